package events_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// A clock that is set back does not change the order. Events are numbered and returned in
// the order in which they were recorded, with the clock's times. No run ends before it
// began.
func TestClockSetBack(t *testing.T) {
	r := newRig(t)
	w := r.Begin("s")
	w.Record("a", nil)
	r.advance(time.Minute)
	w.Observe("b", nil)
	r.Flush(t.Context(), "s")
	r.advance(-48 * time.Hour)
	w.Record("c", nil)
	r.Flush(t.Context(), "s")
	r.advance(-time.Second)
	w.Observe("d", nil)
	w.End(t.Context(), profiles.RunCompleted, "")
	want := []string{"1-1 a", "1-2 b", "1-3 c", "1-4 d", "1-5 ended"}
	r.equal(r.stored(), want)

	runs, err := r.Runs(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if age := runs[0].EndedAt.Sub(runs[0].StartedAt); age != 0 {
		t.Errorf("the run lasted %s", age)
	}
	page, err := r.Events(t.Context(), runs[0].ID, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	var at []time.Duration
	for _, e := range page.Events {
		at = append(at, e.At.Sub(began))
	}
	r.equal(at, []time.Duration{time.Minute, time.Minute - 48*time.Hour, time.Minute - 48*time.Hour - time.Second})

	feed, err := r.Follow(t.Context(), "s", &events.Position{Run: 1, Sequence: 2}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for _, next := range want[2:] {
		e, err := feed.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.equal(fmt.Sprintf("%d-%d %s", e.At.Run, e.At.Sequence, e.Type), next)
	}
}
