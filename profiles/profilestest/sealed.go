package profilestest

import (
	"bytes"
	"fmt"

	"github.com/stasisd/stasis/profiles"
)

// walk returns all sealed events, read in pages of limit.
func (f *fixture) walk(limit int) (all []profiles.SealedEvent) {
	f.Helper()
	var last profiles.SealedEvent
	for {
		page, err := f.c.Events.SealedEvents(f.ctx, last, limit)
		f.must(err)
		if len(page) == 0 {
			return all
		}
		if limit > 0 && len(page) > limit {
			f.Errorf("a page of %d has %d", limit, len(page))
		}
		last = page[len(page)-1]
		last.Sealed = nil // only the position counts
		all = append(all, page...)
	}
}

// SealedEvents returns the sealed data of all runs' events once each, also of ended runs.
// Data that replaces it counts from then on.
func testSealedEvents(f *fixture) {
	f.session("s", "ada")
	f.same(f.walk(0), []profiles.SealedEvent{})
	sealed := func(text string) profiles.Event {
		return profiles.Event{Type: "four", At: start, Data: []byte("1"), Sealed: []byte(text)}
	}
	runs := ids("r", 3)
	for _, run := range runs {
		f.run(run, "s")
		_, err := f.c.Events.AddEvents(f.ctx, run, []profiles.Event{sealed(run + " first"), {Type: "x", At: start}, sealed(run + " third")}, profiles.EventBounds{})
		f.must(err)
	}
	_, err := f.c.Runs.EndRun(f.ctx, profiles.RunEnd{RunID: runs[1], Status: profiles.RunCompleted, EndedAt: start}, profiles.EventBounds{})
	f.must(err)
	want := map[string]string{}
	for _, run := range runs {
		want[run+" 1"], want[run+" 3"] = run+" first", run+" third"
	}
	for _, limit := range []int{0, 1, 2, 4} {
		got := map[string]string{}
		all := f.walk(limit)
		for _, e := range all {
			got[fmt.Sprint(e.RunID, " ", e.Sequence)] = string(e.Sealed)
		}
		f.same(got, want)
		f.same(len(all), len(want))
	}

	// One event has other data by now, one was trimmed, and one is unchanged.
	all := f.walk(0)
	f.add(all[4].RunID, "x", profiles.EventBounds{Count: 2}, 0)
	for i := range all {
		all[i].Replacement = append([]byte("anew "), all[i].Sealed...)
	}
	all[1].Sealed, all[2].Replacement = []byte("another"), nil
	n, err := f.c.Events.ResealEvents(f.ctx, all)
	f.must(err)
	f.same(n, 3) // without the first event of the trimmed run
	for i, e := range f.walk(0) {
		if i >= 4 { // the trimmed one is missing
			i++
		}
		if was := !bytes.HasPrefix(e.Sealed, []byte("anew ")); was != (i == 1 || i == 2) {
			f.Errorf("%d: %s", i, e.Sealed)
		}
	}
	n, err = f.c.Events.ResealEvents(f.ctx, all) // resealed events have other data now
	f.must(err)
	f.same(n, 0)

	// 15 bytes, which become 35 when resealed.
	f.run("size", "s")
	_, err = f.c.Events.AddEvents(f.ctx, "size", []profiles.Event{sealed("1234567890")}, profiles.EventBounds{})
	f.must(err)
	n, err = f.c.Events.ResealEvents(f.ctx, []profiles.SealedEvent{{RunID: "size", Sequence: 1, Sealed: []byte("1234567890"), Replacement: make([]byte, 30)}})
	f.must(err)
	f.same(n, 1)
	f.add("size", "more", profiles.EventBounds{Bytes: 39}, 0) // all events fit
	f.checkPage(f.events("size", 0, 0), []int64{1, 2}, 1, 3, 2, false, false)
	f.add("size", "more", profiles.EventBounds{Bytes: 42}, 0)
	f.checkPage(f.events("size", 0, 0), []int64{2, 3}, 2, 4, 3, true, false)
	f.add("size", "more", profiles.EventBounds{Bytes: 12}, 0) // trimmed events no longer count
	f.checkPage(f.events("size", 1, 0), []int64{2, 3, 4}, 2, 5, 4, false, false)
}
