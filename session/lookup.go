package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/drive"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/files"
	"github.com/stasisd/stasis/session/inspect"
)

// Lookup gives other packages what they need of sessions. Its methods are safe for
// concurrent use.
type Lookup struct{ s *Service }

var (
	_ access.LiveSessions = Lookup{}
	_ agent.Sessions      = Lookup{}
	_ drive.Sessions      = Lookup{}
	_ events.Sessions     = Lookup{}
	_ files.Sessions      = Lookup{}
	_ inspect.Sessions    = Lookup{}
)

// Lookup returns the sessions of a Service, for packages that it does not import.
func (s *Service) Lookup() Lookup { return Lookup{s} }

// Record returns a session's record if the caller has permission p for it.
func (l Lookup) Record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error) {
	return l.s.inspector.Record(ctx, c, id, p)
}

// Report records an event in the run of a user's live session and waits until it is on
// disk.
func (l Lookup) Report(ctx context.Context, userID, id, event string, data events.Fields) {
	session := l.s.sessions.Find(id)
	if session == nil || session.rights.UserID != userID {
		return
	}
	// A session that has ended meanwhile has no run to record in.
	_ = session.ask(context.WithoutCancel(ctx), func() error {
		session.runs.Record(event, data)
		return nil
	})
	l.s.deps.Journal.Flush(ctx, id)
}

// Describe returns a session as it is now, and whether an agent follows it.
func (l Lookup) Describe(ctx context.Context, c access.Caller, id string) (profiles.Session, bool, error) {
	info, err := l.s.inspector.Get(ctx, c, id)
	return info.Session, info.HasAgent, err
}

// WithDir calls do with the run directory of a live session, if the caller may drive it.
func (l Lookup) WithDir(ctx context.Context, c access.Caller, id string, do func(context.Context, *browser.Dir) error) error {
	return l.withChrome(ctx, c, id, access.Drive, func(ctx context.Context, chrome browsers.Chrome) error { return do(ctx, chrome.Dir()) })
}

// WithBrowser calls do with the browser of a live session, if the caller has permission p.
func (l Lookup) WithBrowser(ctx context.Context, c access.Caller, id string, p access.Permission, do func(context.Context, drive.Chrome) error) error {
	return l.withChrome(ctx, c, id, p, func(ctx context.Context, chrome browsers.Chrome) error { return do(ctx, chrome) })
}

// callDeadline bounds a call that borrows a browser.
const callDeadline = 30 * time.Second

func (l Lookup) withChrome(ctx context.Context, c access.Caller, id string, p access.Permission, do func(context.Context, browsers.Chrome) error) error {
	session, err := l.s.running(ctx, c, id, p)
	if err != nil {
		return err
	}
	ctx, leave, err := session.rights.CallContext(ctx, c)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	return session.use(ctx, do)
}

// Running returns a live session if the caller may drive it.
func (l Lookup) Running(ctx context.Context, c access.Caller, id string) (agent.Live, error) {
	session, err := l.s.running(ctx, c, id, access.Drive)
	if err != nil {
		return nil, err
	}
	return agentAdapter{session}, nil
}

// Live returns the live session with an ID, or nil.
func (l Lookup) Live(id string) agent.Live {
	if session := l.s.sessions.Find(id); session != nil {
		return agentAdapter{session}
	}
	return nil
}

// Rights returns what access checks need of the live session with an ID, or nil.
func (l Lookup) Rights(id string) *access.LiveSession {
	if session := l.s.sessions.Find(id); session != nil {
		return session.rights
	}
	return nil
}

// Find returns the live session with an ID, to describe it, or nil.
func (l Lookup) Find(id string) inspect.Live {
	if session := l.s.sessions.Find(id); session != nil {
		return session
	}
	return nil
}

// Rescuing reports whether the data that a killed daemon left of a session is being
// saved.
func (l Lookup) Rescuing(id string) bool { return l.s.rescues.Has(id) }

// UndoUntil returns until when a session that ended without a save can still be saved; ok
// is false if it cannot.
func (l Lookup) UndoUntil(id string) (_ time.Time, ok bool) { return l.s.undo.Until(id) }

// AwaitRescue waits while the data that a killed daemon left of a session is being saved.
func (l Lookup) AwaitRescue(ctx context.Context, id string) error { return l.s.rescues.Await(ctx, id) }
