package events_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// While the catalogue refuses events, images of pages do not fill the memory: those that
// exceed the limit are counted, and the daemon's own events are kept.
func TestRefusedPictures(t *testing.T) {
	r := newRig(t)
	w := r.Begin("s")
	r.failWith(errors.New("no room"))
	image := make([]byte, 500<<10)
	const taken, capacity = 100, 2 * (8 << 20) / (500 << 10)
	for range taken {
		w.Observe("screenshot", events.Fields{"jpeg": image})
		r.Flush(t.Context(), "s")
	}
	w.Record(events.Saved, nil)
	r.failWith(nil)
	w.End(t.Context(), profiles.RunCompleted, "")

	runs, err := r.Runs(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var all []profiles.Event
	for after, more := int64(0), true; more; after = int64(len(all)) {
		page, err := r.Events(t.Context(), runs[0].ID, after, 0)
		if err != nil {
			t.Fatal(err)
		}
		all, more = append(all, page.Events...), len(page.Events) > 0
	}
	kept, dropped, saved := 0, 0, 0
	for _, e := range all {
		switch e.Type {
		case "screenshot":
			kept++
		case events.Saved:
			saved++
		case events.Dropped:
			var counted struct{ Types map[string]int }
			if err := json.Unmarshal(e.Data, &counted); err != nil {
				t.Fatal(err)
			}
			dropped += counted.Types["screenshot"]
		}
	}
	if kept == 0 || kept > capacity || kept+dropped != taken || saved != 1 {
		t.Errorf("%d of %d pictures kept and %d dropped, want at most %d kept; saved: %d", kept, taken, dropped, capacity, saved)
	}
}
