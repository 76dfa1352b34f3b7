package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/journal"
)

// Runs lists a session's runs, oldest first; those of an ended session too.
func (s *Service) Runs(ctx context.Context, c Caller, id string) ([]profiles.Run, error) {
	if _, err := s.record(ctx, c, id, look); err != nil {
		return nil, err
	}
	s.journal.Flush(ctx, id)
	return s.Catalogue.Runs(ctx, id)
}

// RunEvents gives a page of a run's events: those after a sequence. whole gives
// secrets in them too, and needs the right to.
func (s *Service) RunEvents(ctx context.Context, c Caller, id, runID string, after int64, limit int, whole bool) (profiles.EventPage, error) {
	if err := s.mayRead(ctx, c, id, whole); err != nil {
		return profiles.EventPage{}, err
	}
	s.journal.Flush(ctx, id)
	run, err := s.Catalogue.Run(ctx, runID)
	if err != nil {
		return profiles.EventPage{}, err
	}
	if run.SessionID != id {
		return profiles.EventPage{}, fault.New(fault.RunNotFound, "session.events", "%s", fault.RunNotFound.Text())
	}
	page, err := s.Catalogue.Events(ctx, runID, after, limit)
	if err != nil || len(page.Events) == 0 {
		return page, err
	}
	if !whole {
		leave, err := s.masks.take(ctx, c.UserID)
		if err != nil {
			return profiles.EventPage{}, err
		}
		defer leave()
	}
	for i := range page.Events {
		if err := ctx.Err(); err != nil {
			return profiles.EventPage{}, givenUp(err)
		}
		if page.Events[i].Data, err = s.journal.Read(page.Events[i], whole); err != nil {
			return profiles.EventPage{}, err
		}
	}
	return page, nil
}

// Follow asks for a session's events as they come.
type Follow struct {
	After *journal.Position // go on after this event; nil: from the beginning
	Fresh bool              // without After: only what comes from now on
	Whole bool              // secrets too, which needs the right to
}

// Feed gives a session's events; see [journal.Feed].
type Feed interface {
	Next(ctx context.Context) (journal.Entry, error)
	Close()
}

// Follow begins a feed of a session's events, over all its runs. An ended
// session's has what is kept, and ends. Where as many are open as may it is
// too_many_requests.
func (s *Service) Follow(ctx context.Context, c Caller, id string, f Follow) (Feed, error) {
	if err := s.mayRead(ctx, c, id, f.Whole); err != nil {
		return nil, err
	}
	place, err := s.streams.take(id, c.KeyID)
	if err != nil {
		return nil, err
	}
	feed, err := s.follow(ctx, c, id, f)
	if err != nil {
		place()
		return nil, err
	}
	leave := feed.leave
	feed.leave = func() { leave(); place() }
	return feed, nil
}

func (s *Service) follow(ctx context.Context, c Caller, id string, f Follow) (*openFeed, error) {
	// What a rescue has to tell is written at its end, and the stream ends with it.
	if err := s.rescues.await(ctx, id); err != nil {
		return nil, err
	}
	feed, err := s.journal.Follow(ctx, id, f.After, f.Fresh)
	if err != nil {
		return nil, err
	}
	open := &openFeed{Feed: feed, journal: s.journal, whole: f.Whole}
	var deleted context.CancelCauseFunc
	open.key, deleted = context.WithCancelCause(context.WithoutCancel(ctx))
	leave, err := s.connect(ctx, c, func() { deleted(errKeyDeleted) })
	if err != nil {
		deleted(nil)
		feed.Close()
		return nil, err
	}
	open.leave = func() { leave(); deleted(nil) }
	return open, nil
}

// openFeed gives events with their data, which is sealed on disk.
type openFeed struct {
	*journal.Feed
	journal *journal.Journal
	whole   bool
	key     context.Context // ends with the reader's key
	leave   func()
}

// Next gives the next event. For a reader whose key was deleted that is
// unauthorized.
func (f *openFeed) Next(ctx context.Context) (journal.Entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.key, cancel)()
	e, err := f.Feed.Next(ctx)
	if f.key.Err() != nil {
		return e, context.Cause(f.key)
	}
	if err == nil {
		e.Data, err = f.journal.Read(e.Event, f.whole)
	}
	return e, err
}

// Close ends the feed.
func (f *openFeed) Close() {
	f.leave()
	f.Feed.Close()
}

// mayRead checks that the caller may read a session's events.
func (s *Service) mayRead(ctx context.Context, c Caller, id string, whole bool) error {
	if _, err := s.record(ctx, c, id, look); err != nil {
		return err
	}
	if whole && !c.may(secrets) {
		return fault.New(fault.Forbidden, "session.events", "sanitize: false needs a key with the right %q", profiles.RightSecrets)
	}
	return nil
}
