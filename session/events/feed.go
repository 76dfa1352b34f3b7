package events

import (
	"context"
	"io"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Position identifies an event of a session by its run's number and its sequence in the
// run. The zero value is before all events.
type Position struct {
	Run      int64
	Sequence int64
}

// Entry is one event as a [Feed] returns it.
type Entry struct {
	profiles.Event
	At  Position
	Old bool // it existed when the feed began, and the feed began without a position
	// Gaps are the runs with events before this one that were trimmed before they were
	// read.
	Gaps []Gap
}

// Gap says that events of a run were trimmed.
type Gap struct {
	RunID string
	First int64 // the sequence of the oldest event that is or will be stored
}

// feedPage is how many events a feed reads at once.
const feedPage = 200

// Feed returns the stored events of a session, each once and in order: first those that
// exist, then new ones. It buffers only one page, however slow its reader is. It has one
// reader, who must close it.
type Feed struct {
	j       *Journal
	watch   *watcher
	at      Position
	runs    []profiles.Run // those not read to their ends, oldest first
	page    []profiles.Event
	gaps    []Gap
	old     Position // events up to this one are old
	resumed bool
}

// Follow begins a feed of a session after a position; nil means from the beginning. With
// fresh it returns only new events. A position that does not exist is invalid_field.
func (j *Journal) Follow(ctx context.Context, sessionID string, after *Position, fresh bool) (_ *Feed, err error) {
	f := &Feed{j: j, watch: j.watch(sessionID)}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	j.Flush(ctx, sessionID)
	if err := f.look(ctx); err != nil {
		return nil, err
	}
	if n := len(f.runs); n > 0 {
		last, err := j.store.Events(ctx, f.runs[n-1].ID, 0, 1)
		if err != nil {
			return nil, err
		}
		f.old = Position{f.runs[n-1].Number, last.LatestExclusive - 1}
	}
	switch {
	case after != nil:
		f.at, f.resumed = *after, true
		return f, f.check(ctx)
	case fresh:
		f.at = f.old
	}
	return f, nil
}

// check returns an error for a position that does not exist.
func (f *Feed) check(ctx context.Context) error {
	const op = "events.follow"
	if f.at == (Position{}) {
		return nil
	}
	for _, r := range f.runs {
		if r.Number != f.at.Run {
			continue
		}
		page, err := f.j.store.Events(ctx, r.ID, 0, 1)
		if err != nil {
			return err
		}
		if f.at.Sequence < page.LatestExclusive {
			return nil
		}
		return fault.New(fault.InvalidField, op, "Last-Event-ID: must not be after the last event of run %d, which is %d-%d", r.Number, r.Number, page.LatestExclusive-1)
	}
	return fault.New(fault.InvalidField, op, "Last-Event-ID: the session has no run %d", f.at.Run)
}

// Close ends the feed. It may be called more than once.
func (f *Feed) Close() { f.j.unwatch(f.watch) }

// Next returns the next event. It waits if there is none yet, also between two runs of a
// live session. io.EOF means that the session has ended and all events were returned.
func (f *Feed) Next(ctx context.Context) (Entry, error) {
	for {
		if len(f.page) > 0 {
			e := Entry{Event: f.page[0], Gaps: f.gaps}
			f.page, f.gaps = f.page[1:], nil
			f.at.Sequence = e.Sequence
			e.At = f.at
			e.Old = !f.resumed && (e.At.Run < f.old.Run || e.At.Run == f.old.Run && e.At.Sequence <= f.old.Sequence)
			return e, nil
		}
		mayContinue := f.j.mayContinue(f.watch.session) // asked before reading, so that the last events are not missed
		if err := f.read(ctx); err != nil {
			return Entry{}, err
		}
		if len(f.page) > 0 {
			continue
		}
		if !mayContinue {
			return Entry{}, io.EOF
		}
		select {
		case <-f.watch.more:
		case <-ctx.Done():
			return Entry{}, ctx.Err()
		}
	}
}

// read reads the next page: from the feed's current run, else from the next one.
func (f *Feed) read(ctx context.Context) error {
	if err := f.look(ctx); err != nil {
		return err
	}
	var gaps []Gap
	for _, r := range f.runs {
		after := int64(0)
		if r.Number == f.at.Run {
			after = f.at.Sequence
		}
		page, err := f.j.store.Events(ctx, r.ID, after, feedPage)
		if err != nil {
			return err
		}
		if page.Gap {
			gaps = append(gaps, Gap{r.ID, page.First})
		}
		if len(page.Events) > 0 {
			f.at.Run, f.page, f.gaps = r.Number, page.Events, gaps
			return nil
		}
	}
	return nil
}

// look reads the runs of the session that may have more events.
func (f *Feed) look(ctx context.Context) error {
	all, err := f.j.store.Runs(ctx, f.watch.session)
	if err != nil {
		return err
	}
	f.runs = f.runs[:0]
	for _, r := range all {
		if r.Number >= f.at.Run {
			f.runs = append(f.runs, r)
		}
	}
	return nil
}
