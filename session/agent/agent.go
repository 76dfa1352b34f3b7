// Package agent serves the agents that drive sessions: their documents, the notes
// that go with an environment, and the conversation between a user and an agent.
// It knows sessions through [Sessions] alone.
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
	// Record is a session's record, if the caller may do something with it:
	// forbidden without the right, session_not_found where the caller may not even
	// look at it.
	Record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error)
	// Describe is a session as it is now, for a caller that may look at it, and
	// whether an agent follows it.
	Describe(ctx context.Context, c access.Caller, id string) (rec profiles.Session, hasAgent bool, err error)
	// Report records an event in the run of a user's live session and waits until it
	// is on disk. Where the user has no live session of that ID, it does nothing.
	Report(ctx context.Context, userID, id, event string, data events.Fields)
	// Running is a live session, for a caller that may drive it. One that has ended is
	// session_not_running.
	Running(ctx context.Context, c access.Caller, id string) (Live, error)
	// Live is the live session of an ID; nil where there is none.
	Live(id string) Live
}

// Driver drives the browsers of live sessions.
type Driver interface {
	// Navigate sends the tab in front to a URL and returns where it came to.
	Navigate(ctx context.Context, c access.Caller, id, url string) (at string, err error)
}

// Live is a session that runs. A method that finds it ended is session_not_running.
type Live interface {
	// AwaitRestart waits while the session's Chrome is started again.
	AwaitRestart(ctx context.Context)
	// State is the session's state now.
	State(ctx context.Context) (State, error)
	// Update makes an update after those that wait, and returns when it has been
	// applied and its event is on disk. When ctx ends first, what was begun goes on.
	Update(ctx context.Context, u Update) error
	// Apply applies an effect that was written out of the session's order. The
	// session then takes how its task stands from the catalogue, because others may
	// have written since.
	Apply(ctx context.Context, e Effect)
}

// State is what a live session knows of its agent and its task.
type State struct {
	Unusable  error // why the browser cannot be used; nil: it can
	HasAgent  bool  // somebody follows the session's events, or it has a webhook
	Followed  bool  // somebody follows the session's events
	Execution profiles.Execution
}

// Update is one write of a session, in the order of the session's writes.
type Update struct {
	// Begin decides, when it is the update's turn, whether there is something to write.
	Begin func(now State) (write bool, err error)
	// Write writes it, beside the session's goroutine. The session applies the effect
	// where there is no error.
	Write func(ctx context.Context) (Effect, error)
}

// Effect is what a write changes in the live session: how its task stands, and an
// event in its run.
type Effect struct {
	Execution profiles.Execution
	Event     string // its type
	Data      events.Fields
}

// owner is the record that says whose documents and notes an agent keeps under a
// session ID. The caller's own user comes first: has reports whether that user has
// some there. Otherwise they belong to the user of the session with that ID, if the
// caller may do p with it. A session of another user takes nothing away.
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
