package events

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// MaxMasking is how many pages of messages and events are masked at once. A page of 4 MiB
// takes seconds.
const MaxMasking = 2

// Sessions is what a Reader needs of the sessions.
type Sessions interface {
	// Record returns a session's record, if the caller has the permission p for it.
	Record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error)
	// AwaitRescue waits until the rescue of a session has ended.
	AwaitRescue(ctx context.Context, id string) error
}

// Keys reports when a reader's key is deleted; see [access.Keys].
type Keys interface {
	RegisterConnection(ctx context.Context, c access.Caller, end func(why error)) (leave func(), err error)
}

// Turns limits how many pages are masked at once, at most one for each user.
type Turns interface {
	Take(ctx context.Context, userID string) (leave func(), err error)
}

// RunStore is what a Reader needs of the catalogue; see [profiles.RunStore] and
// [profiles.EventStore].
type RunStore interface {
	Runs(ctx context.Context, sessionID string) ([]profiles.Run, error)
	Run(ctx context.Context, id string) (profiles.Run, error)
	Events(ctx context.Context, runID string, after int64, limit int) (profiles.EventPage, error)
}

// ReaderConfig is what NewReader needs.
type ReaderConfig struct {
	Journal  *Journal
	Store    RunStore
	Sessions Sessions
	Keys     Keys
	Masks    Turns // limits who masks pages at once to [MaxMasking]
}

// Reader returns the runs and events of the sessions that a caller may read. Its methods
// are safe for concurrent use.
type Reader struct {
	journal  *Journal
	store    RunStore
	sessions Sessions
	keys     Keys
	masks    Turns
	streams  *streams
}

// NewReader makes a Reader. Only its streams need to be closed.
func NewReader(c ReaderConfig) *Reader {
	return &Reader{c.Journal, c.Store, c.Sessions, c.Keys, c.Masks, newStreams()}
}

// Runs lists a session's runs, oldest first, also those of an ended session.
func (r *Reader) Runs(ctx context.Context, c access.Caller, id string) ([]Run, error) {
	if _, err := r.sessions.Record(ctx, c, id, access.Look); err != nil {
		return nil, err
	}
	r.journal.Flush(ctx, id)
	records, err := r.store.Runs(ctx, id)
	runs := make([]Run, 0, len(records))
	for _, rec := range records {
		runs = append(runs, runOf(rec))
	}
	return runs, err
}

// RunEvents returns a page of a run's events: those after a sequence. With secrets it
// includes secrets, which needs the right to secrets.
func (r *Reader) RunEvents(ctx context.Context, c access.Caller, id, runID string, after int64, limit int, secrets bool) (EventPage, error) {
	if err := r.mayRead(ctx, c, id, secrets); err != nil {
		return EventPage{}, err
	}
	r.journal.Flush(ctx, id)
	run, err := r.store.Run(ctx, runID)
	if err != nil {
		return EventPage{}, err
	}
	if run.SessionID != id {
		return EventPage{}, fault.New(fault.RunNotFound, "events.page", "%s", fault.RunNotFound.Text())
	}
	page, err := r.store.Events(ctx, runID, after, limit)
	if err != nil {
		return EventPage{}, err
	}
	if !secrets && len(page.Events) > 0 {
		leave, err := r.masks.Take(ctx, c.UserID)
		if err != nil {
			return EventPage{}, err
		}
		defer leave()
	}
	answers := make([]Event, 0, len(page.Events))
	for _, e := range page.Events {
		if err := ctx.Err(); err != nil {
			return EventPage{}, fault.Wrap(err, fault.Timeout, "events.page", "the request ended before the work was done")
		}
		if e.Data, err = r.journal.Read(e, secrets); err != nil {
			return EventPage{}, err
		}
		answers = append(answers, eventOf(e))
	}
	return EventPage{answers, page.First, page.LatestExclusive, page.NextAfter, page.Gap, page.HasMore}, nil
}

// Follow begins a stream of a session's events, over all its runs. The stream of an ended
// session returns the stored events and ends. If too many streams are open, the error is
// too_many_requests.
func (r *Reader) Follow(ctx context.Context, c access.Caller, id string, f FollowRequest) (Stream, error) {
	if err := r.mayRead(ctx, c, id, f.Secrets); err != nil {
		return nil, err
	}
	release, err := r.streams.take(id, c.KeyID)
	if err != nil {
		return nil, err
	}
	stream, err := r.follow(ctx, c, id, f)
	if err != nil {
		release()
		return nil, err
	}
	leave := stream.leave
	stream.leave = func() { leave(); release() }
	return stream, nil
}

func (r *Reader) follow(ctx context.Context, c access.Caller, id string, f FollowRequest) (*stream, error) {
	// A rescue records its events when it ends, and the stream ends with them.
	if err := r.sessions.AwaitRescue(ctx, id); err != nil {
		return nil, err
	}
	feed, err := r.journal.Follow(ctx, id, f.After, f.Fresh)
	if err != nil {
		return nil, err
	}
	open := &stream{feed: feed, journal: r.journal, secrets: f.Secrets}
	var deleted context.CancelCauseFunc
	open.key, deleted = context.WithCancelCause(context.WithoutCancel(ctx))
	leave, err := r.keys.RegisterConnection(ctx, c, deleted)
	if err != nil {
		deleted(nil)
		feed.Close()
		return nil, err
	}
	open.leave = func() { leave(); deleted(nil) }
	return open, nil
}

// mayRead checks that the caller may read a session's events.
func (r *Reader) mayRead(ctx context.Context, c access.Caller, id string, secrets bool) error {
	if _, err := r.sessions.Record(ctx, c, id, access.Look); err != nil {
		return err
	}
	return RequireSecrets(c, secrets)
}

// RequireSecrets returns an error if secrets is set and the caller has no right to secrets.
func RequireSecrets(c access.Caller, secrets bool) error {
	if secrets && !c.May(access.Secrets) {
		return fault.New(fault.Forbidden, "events.read", "sanitize: false is not allowed for this key; it needs the right %q", access.RightSecrets)
	}
	return nil
}

// stream is a feed that unseals the data of its events.
type stream struct {
	feed    *Feed
	journal *Journal
	secrets bool
	key     context.Context // ends when the reader's key is deleted
	leave   func()
}

// Next implements [Stream].
func (s *stream) Next(ctx context.Context) (StreamEvent, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.key, cancel)()
	e, err := s.feed.Next(ctx)
	if s.key.Err() != nil {
		return StreamEvent{}, context.Cause(s.key)
	}
	if err == nil {
		e.Data, err = s.journal.Read(e.Event, s.secrets)
	}
	if err != nil {
		return StreamEvent{}, err
	}
	return StreamEvent{eventOf(e.Event), e.At, e.Old, e.Gaps}, nil
}

// Close ends the stream.
func (s *stream) Close() {
	s.leave()
	s.feed.Close()
}
