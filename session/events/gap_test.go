package events_test

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// If a whole run was trimmed, the first event of the next run reports the gap, with the
// trimmed run's ID.
func TestGapOfAWholeRun(t *testing.T) {
	r := newRig(t)
	r.Begin("s").End(t.Context(), profiles.RunCompleted, "") // one event: its end
	r.advance(48 * time.Hour)
	w := r.Begin("s")
	w.Record(events.Saved, nil)
	w.End(t.Context(), profiles.RunCompleted, "")
	if err := r.ExpireEvents(t.Context(), began.Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	runs, err := r.Runs(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	feed, err := r.Follow(t.Context(), "s", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	first, err := feed.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.equal(first.RunID, runs[1].ID)
	r.equal(first.Gaps, []events.Gap{{RunID: runs[0].ID, First: 2}})
	second, err := feed.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.equal(len(second.Gaps), 0)
}
