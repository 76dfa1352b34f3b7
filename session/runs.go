package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/journal"
)

// Run is what a caller is told of one lifetime of a session's browser.
type Run struct {
	ID        string
	Number    int64  // 1, 2, … within the session
	Status    string // running | completed | failed | cancelled
	Cause     string // why it ended, for people
	StartedAt time.Time
	EndedAt   time.Time // zero while it runs
}

func runOf(r profiles.Run) Run {
	return Run{r.ID, r.Number, string(r.Status), r.Cause, r.StartedAt.UTC(), r.EndedAt}
}

// Event is one numbered record in a run; it is the wire shape.
type Event struct {
	RunID    string          `json:"run_id"`
	Sequence int64           `json:"sequence"`
	Type     string          `json:"type"`
	At       time.Time       `json:"timestamp"`
	Data     json.RawMessage `json:"data"`
}

func eventOf(e profiles.Event) Event {
	return Event{e.RunID, e.Sequence, e.Type, e.At.UTC(), orObject(e.Data)}
}

// EventPage is a part of a run's events, in order; it is the wire shape, whose
// names are those of the published run event records.
type EventPage struct {
	Events          []Event `json:"events"`
	First           int64   `json:"first_available_sequence"`  // the oldest event that is kept; LatestExclusive if none is
	LatestExclusive int64   `json:"latest_sequence_exclusive"` // what the next event will have
	NextAfter       int64   `json:"next_after_sequence"`       // the after of the next page
	Gap             bool    `json:"retention_gap"`             // events after the one asked for, and before this page, were trimmed
	HasMore         bool    `json:"has_more"`
}

// Runs lists a session's runs, oldest first; those of an ended session too.
func (s *Service) Runs(ctx context.Context, c access.Caller, id string) ([]Run, error) {
	if _, err := s.record(ctx, c, id, access.Look); err != nil {
		return nil, err
	}
	s.journal.Flush(ctx, id)
	records, err := s.Catalogue.Runs(ctx, id)
	return each(records, runOf), err
}

// RunEvents gives a page of a run's events: those after a sequence. whole gives
// secrets in them too, and needs the right to.
func (s *Service) RunEvents(ctx context.Context, c access.Caller, id, runID string, after int64, limit int, whole bool) (EventPage, error) {
	if err := s.mayRead(ctx, c, id, whole); err != nil {
		return EventPage{}, err
	}
	s.journal.Flush(ctx, id)
	run, err := s.Catalogue.Run(ctx, runID)
	if err != nil {
		return EventPage{}, err
	}
	if run.SessionID != id {
		return EventPage{}, fault.New(fault.RunNotFound, "session.events", "%s", fault.RunNotFound.Text())
	}
	page, err := s.Catalogue.Events(ctx, runID, after, limit)
	if err != nil {
		return EventPage{}, err
	}
	if !whole && len(page.Events) > 0 {
		leave, err := s.masks.Take(ctx, c.UserID)
		if err != nil {
			return EventPage{}, err
		}
		defer leave()
	}
	for i := range page.Events {
		if err := ctx.Err(); err != nil {
			return EventPage{}, givenUp(err)
		}
		if page.Events[i].Data, err = s.journal.Read(page.Events[i], whole); err != nil {
			return EventPage{}, err
		}
	}
	return EventPage{each(page.Events, eventOf), page.First, page.LatestExclusive, page.NextAfter, page.Gap, page.HasMore}, nil
}

// Follow asks for a session's events as they come.
type Follow struct {
	After *journal.Position // go on after this event; nil: from the beginning
	Fresh bool              // without After: only what comes from now on
	Whole bool              // secrets too, which needs the right to
}

// Entry is one event as a [Feed] gives it; the fields are those of [journal.Entry].
type Entry struct {
	Event
	At   journal.Position
	Old  bool
	Gaps []journal.Gap
}

// Feed gives a session's events; see [journal.Feed].
type Feed interface {
	Next(ctx context.Context) (Entry, error)
	Close()
}

// Follow begins a feed of a session's events, over all its runs. An ended
// session's has what is kept, and ends. Where as many are open as may it is
// too_many_requests.
func (s *Service) Follow(ctx context.Context, c access.Caller, id string, f Follow) (Feed, error) {
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

func (s *Service) follow(ctx context.Context, c access.Caller, id string, f Follow) (*openFeed, error) {
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
	leave, err := s.Keys.Connected(ctx, c, func() { deleted(access.ErrKeyDeleted()) })
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
func (f *openFeed) Next(ctx context.Context) (Entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.key, cancel)()
	e, err := f.Feed.Next(ctx)
	if f.key.Err() != nil {
		return Entry{}, context.Cause(f.key)
	}
	if err == nil {
		e.Data, err = f.journal.Read(e.Event, f.whole)
	}
	return Entry{eventOf(e.Event), e.At, e.Old, e.Gaps}, err
}

// Close ends the feed.
func (f *openFeed) Close() {
	f.leave()
	f.Feed.Close()
}

// mayRead checks that the caller may read a session's events.
func (s *Service) mayRead(ctx context.Context, c access.Caller, id string, whole bool) error {
	if _, err := s.record(ctx, c, id, access.Look); err != nil {
		return err
	}
	if whole && !c.May(access.Secrets) {
		return fault.New(fault.Forbidden, "session.events", "sanitize: false needs a key with the right %q", access.RightSecrets)
	}
	return nil
}
