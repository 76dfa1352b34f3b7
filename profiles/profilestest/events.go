package profilestest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// add appends events of a type, one for each offset from start.
func (f *fixture) add(run, kind string, keep profiles.EventBounds, at ...time.Duration) []profiles.Event {
	f.Helper()
	events := make([]profiles.Event, len(at))
	for i, after := range at {
		events[i] = profiles.Event{Type: kind, At: start.Add(after)}
	}
	added, err := f.c.Events.AddEvents(f.ctx, run, events, keep)
	f.must(err)
	return added
}

func (f *fixture) events(run string, after int64, limit int) profiles.EventPage {
	f.Helper()
	page, err := f.c.Events.Events(f.ctx, run, after, limit)
	f.must(err)
	return page
}

// checkPage checks a page's event sequences and its other fields.
func (f *fixture) checkPage(p profiles.EventPage, sequences []int64, first, latest, next int64, gap, more bool) {
	f.Helper()
	got := []int64{}
	for _, e := range p.Events {
		got = append(got, e.Sequence)
	}
	f.same(got, sequences)
	f.same([]any{p.First, p.LatestExclusive, p.NextAfter, p.Gap, p.HasMore}, []any{first, latest, next, gap, more})
}

// An event is returned as it was given, plus its number. Numbers continue from batch to
// batch and are separate for each run.
func testEvents(f *fixture) {
	f.session("s", "ada")
	f.run("r", "s")
	f.checkPage(f.events("r", 0, 0), []int64{}, 1, 1, 0, false, false)
	given := []profiles.Event{
		{Type: "navigated", At: start, Data: []byte(`{"url": "https://a.example/"}`), Sealed: []byte{0, 255}},
		{Type: "saved", At: start.Add(-time.Hour)}, // the clock was set back
	}
	added, err := f.c.Events.AddEvents(f.ctx, "r", given, profiles.EventBounds{})
	f.must(err)
	for i := range given {
		given[i].RunID, given[i].Sequence = "r", int64(i+1)
	}
	f.same(added, given)
	page := f.events("r", 0, 0)
	f.same(page.Events, given)
	if string(page.Events[0].Data) != string(given[0].Data) {
		f.Errorf("the data changed: %s", page.Events[0].Data)
	}
	if page.Events[1].Data != nil || page.Events[1].Sealed != nil {
		f.Errorf("unset fields have values: %+v", page.Events[1])
	}
	f.same(f.add("r", "more", profiles.EventBounds{}, 0)[0].Sequence, int64(3))
	f.run("r2", "s")
	f.same(f.add("r2", "first", profiles.EventBounds{}, 0)[0].Sequence, int64(1))
}

// Pages follow each other without a gap or a repeat. An after that is impossible is
// refused.
func testEventPages(f *fixture) {
	f.session("s", "ada")
	f.run("r", "s")
	f.add("r", "x", profiles.EventBounds{}, 0, 0, 0, 0, 0)
	f.checkPage(f.events("r", 0, 2), []int64{1, 2}, 1, 6, 2, false, true)
	f.checkPage(f.events("r", 2, 2), []int64{3, 4}, 1, 6, 4, false, true)
	f.checkPage(f.events("r", 4, 2), []int64{5}, 1, 6, 5, false, false)
	f.checkPage(f.events("r", 5, 2), []int64{}, 1, 6, 5, false, false)
	f.checkPage(f.events("r", 3, 2), []int64{4, 5}, 1, 6, 5, false, false)
	for _, after := range []int64{-1, 6, 1 << 62} {
		_, err := f.c.Events.Events(f.ctx, "r", after, 0)
		f.code(err, fault.InvalidField)
		if after > 0 && !strings.Contains(fault.MessageOf(err), "after") {
			f.Errorf("the error does not name the field: %v", err)
		}
	}

	// A page is also limited in bytes, and has an event of any size.
	f.run("large", "s")
	big := []byte(`"` + strings.Repeat("x", profiles.MaxEventPage) + `"`)
	for range 2 {
		_, err := f.c.Events.AddEvents(f.ctx, "large", []profiles.Event{{Type: "x", At: start, Data: big}}, profiles.EventBounds{})
		f.must(err)
	}
	f.checkPage(f.events("large", 0, 0), []int64{1}, 1, 3, 1, false, true)
}

// Events over the bounds are trimmed from the oldest on, and the page reports the gap.
func testEventBounds(f *fixture) {
	f.session("s", "ada")
	f.run("r", "s")
	f.add("r", "x", profiles.EventBounds{Count: 3}, 0, 0)
	f.checkPage(f.events("r", 0, 0), []int64{1, 2}, 1, 3, 2, false, false)
	f.add("r", "x", profiles.EventBounds{Count: 3}, 0, 0, 0, 0)
	f.checkPage(f.events("r", 0, 0), []int64{4, 5, 6}, 4, 7, 6, true, false)
	f.checkPage(f.events("r", 2, 1), []int64{4}, 4, 7, 4, true, true)
	f.checkPage(f.events("r", 3, 1), []int64{4}, 4, 7, 4, false, true)

	f.run("bytes", "s")
	event := profiles.Event{Type: "four", At: start, Data: []byte(`"12"`), Sealed: []byte("12")} // 10 bytes
	for range 3 {
		_, err := f.c.Events.AddEvents(f.ctx, "bytes", []profiles.Event{event, event}, profiles.EventBounds{Bytes: 35})
		f.must(err)
	}
	f.checkPage(f.events("bytes", 0, 0), []int64{4, 5, 6}, 4, 7, 6, true, false)
	event.Data = []byte(`"` + strings.Repeat("x", 100) + `"`)
	_, err := f.c.Events.AddEvents(f.ctx, "bytes", []profiles.Event{event}, profiles.EventBounds{Bytes: 35})
	f.must(err)
	f.checkPage(f.events("bytes", 0, 0), []int64{7}, 7, 8, 7, true, false) // the newest stays
	f.add("bytes", "x", profiles.EventBounds{Bytes: 35}, 0)
	f.checkPage(f.events("bytes", 7, 0), []int64{8}, 8, 9, 8, false, false)
}

// Old events expire, also those of ended runs, but only from the front. An event with an
// earlier time, because the clock was set back, leaves no gap.
func testEventsExpire(f *fixture) {
	f.session("s", "ada")
	f.run("r", "s")
	f.add("r", "x", profiles.EventBounds{}, 0, time.Hour, 0, 2*time.Hour)
	f.must(f.c.Events.ExpireEvents(f.ctx, start))
	f.checkPage(f.events("r", 0, 0), []int64{1, 2, 3, 4}, 1, 5, 4, false, false)
	f.must(f.c.Events.ExpireEvents(f.ctx, start.Add(time.Minute)))
	f.checkPage(f.events("r", 0, 0), []int64{2, 3, 4}, 2, 5, 4, true, false)
	_, err := f.c.Runs.EndRun(f.ctx, profiles.RunEnd{RunID: "r", Status: profiles.RunCompleted, EndedAt: start}, profiles.EventBounds{})
	f.must(err)
	f.must(f.c.Events.ExpireEvents(f.ctx, start.Add(time.Hour*24)))
	f.checkPage(f.events("r", 0, 0), []int64{}, 5, 5, 4, true, false)
	f.checkPage(f.events("r", 4, 0), []int64{}, 5, 5, 4, false, false)
}

// Of many concurrent writers each gets its own numbers. Every batch stays together, also
// for concurrent readers.
func testEventRace(f *fixture) {
	f.session("s", "ada")
	f.run("r", "s")
	const writers, batches, each = 8, 10, 3
	var mu sync.Mutex
	given := map[int64]string{}
	f.together(writers, func(w int, c Catalogue) {
		for b := range batches {
			kind := fmt.Sprintf("%d-%d", w, b)
			added, err := c.Events.AddEvents(f.ctx, "r", []profiles.Event{{Type: kind, At: start}, {Type: kind, At: start}, {Type: kind, At: start}},
				profiles.EventBounds{Count: 100})
			f.code(err, "")
			mu.Lock()
			for _, e := range added {
				given[e.Sequence] = kind
			}
			mu.Unlock()
			if page, err := c.Events.Events(f.ctx, "r", 0, 0); err != nil || int64(len(page.Events)) != page.LatestExclusive-page.First {
				f.Errorf("a page from %d to %d has %d events: %v", page.First, page.LatestExclusive, len(page.Events), err)
			}
		}
	})
	const all = writers * batches * each
	f.same(len(given), all)
	for n := int64(1); n <= all; n += each {
		if given[n] == "" || given[n] != given[n+1] || given[n] != given[n+2] {
			f.Errorf("%d is of %q, %q and %q", n, given[n], given[n+1], given[n+2])
		}
	}
	page := f.events("r", all-100, 0)
	for _, e := range page.Events {
		if given[e.Sequence] != e.Type {
			f.Errorf("%d is %s, but its number was given to %s", e.Sequence, e.Type, given[e.Sequence])
		}
	}
	f.same([]int64{page.First, page.LatestExclusive}, []int64{all - 99, all + 1})
}
