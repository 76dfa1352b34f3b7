// Package agent serves the agents that drive sessions: their documents, the notes that
// are saved with an environment, and the conversation between a user and an agent. It
// reaches sessions only through [Sessions].
package agent

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/events"
)

// Sessions are the sessions that agents drive.
type Sessions interface {
	// Record returns a session's record, if the caller has the permission p for it. The
	// error is forbidden without the right, and session_not_found if the caller may not
	// even see the session.
	Record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error)
	// Describe returns a session's current record, for a caller that may see it, and
	// whether an agent follows the session.
	Describe(ctx context.Context, c access.Caller, id string) (rec profiles.Session, hasAgent bool, err error)
	// Report records an event in the run of a user's live session and waits until it is
	// on disk. If the user has no live session with that ID, it does nothing.
	Report(ctx context.Context, userID, id, event string, data events.Fields)
	// Running returns a live session, for a caller that may drive it. If it has ended,
	// the error is session_not_running.
	Running(ctx context.Context, c access.Caller, id string) (Live, error)
	// Live returns the live session with an ID; nil if there is none.
	Live(id string) Live
}

// Driver drives the browsers of live sessions.
type Driver interface {
	// Navigate sends the front tab to a URL and returns the final URL.
	Navigate(ctx context.Context, c access.Caller, id, url string) (at string, err error)
}

// Live is a running session. If it has ended, its methods return session_not_running.
type Live interface {
	// AwaitRestart waits while the session's Chrome is started again.
	AwaitRestart(ctx context.Context)
	// State returns the session's current state.
	State(ctx context.Context) (State, error)
	// Update queues an update and returns when it has been applied and its event is on
	// disk. If ctx ends first, an update that has begun continues.
	Update(ctx context.Context, u Update) error
	// Apply applies an effect that was written outside of the session's queue. The
	// session then reads the state of its task from the catalogue, because others may
	// have written it since.
	Apply(ctx context.Context, e Effect)
}

// State is what a live session knows of its agent and its task.
type State struct {
	Unusable  error // why the browser cannot be used; nil: it can
	HasAgent  bool  // a client follows the session's events, or it has a webhook
	Followed  bool  // a client follows the session's events
	Execution profiles.Execution
}

// Update is one write for a session. Updates run one after the other.
type Update struct {
	// Begin is called when it is the update's turn. It decides whether there is something
	// to write.
	Begin func(now State) (write bool, err error)
	// Write writes it, outside of the session's goroutine. If there is no error, the
	// session applies the effect.
	Write func(ctx context.Context) (Effect, error)
}

// Effect is what a write changes in the live session: the state of its task, and an event
// in its run.
type Effect struct {
	Execution profiles.Execution
	Event     string // its type
	Data      events.Fields
	TurnEnded bool // a turn of the conversation has ended
}

// owner returns the record whose UserID owns the documents and notes under a session ID.
// The caller's own user comes first: has reports whether that user has some there.
// Otherwise they belong to the user of the session with that ID, if the caller has the
// permission p for it. If another user has a session with that ID, the caller's own
// documents stay available.
func owner(ctx context.Context, s Sessions, c access.Caller, sessionID string, p access.Permission, has func() (bool, error)) (profiles.Session, error) {
	rec, err := s.Record(ctx, c, sessionID, p)
	own := profiles.Session{UserID: c.UserID}
	switch {
	case fault.Is(err, fault.SessionNotFound):
		if p == access.Drive {
			p = access.Manage
		}
		return own, c.Require(p)
	case err != nil || rec.UserID == c.UserID:
		return rec, err
	}
	if found, err := has(); found || err != nil {
		return own, err
	}
	return rec, nil
}
