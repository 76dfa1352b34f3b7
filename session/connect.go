package session

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
)

// Conn is one CDP client's connection, message by message; see mux.Conn.
type Conn = mux.Conn

// NonblockingConn is a Conn that can also send without waiting; see mux.NonblockingConn.
type NonblockingConn = mux.NonblockingConn

// Metered is a Conn that counts the memory of its reads; see mux.Metered.
type Metered = mux.Metered

// MayDrive returns an error if the caller may not drive a session. It is called before
// the client's connection is upgraded.
func (s *Service) MayDrive(ctx context.Context, c access.Caller, id string) error {
	_, err := s.inspector.Record(ctx, c, id, access.Drive)
	return err
}

// Attach reserves a connection for one CDP client of a session, before it is upgraded and
// served by [Service.Connect]; see [capacity.Clients.Take] and [Service.OpenSocket].
func (s *Service) Attach(ctx context.Context, c access.Caller, id string) (release func(), err error) {
	return s.attach(ctx, c, id, s.clients)
}

// Client says what a CDP client of a session gets.
type Client struct {
	TargetID string // "" for the browser
	// Contexts is what the contexts are that the client creates: ContextsNew,
	// ContextsEnvironment, or "" for what the session's create says.
	Contexts string
	// SharedWrites permits to clear the environment in such contexts, also if the session's
	// create does not.
	SharedWrites bool
}

// What the browser contexts of a client are.
const (
	ContextsNew         = "new"         // empty, as Chrome makes them
	ContextsEnvironment = "environment" // the session's own profile; see mux.SharedContexts
)

// shared returns the client's shared contexts; nil if its contexts are new ones.
func (c Client) shared(r request.Create) *mux.SharedContexts {
	if c.Contexts == ContextsNew || c.Contexts == "" && !r.SharedContexts {
		return nil
	}
	return &mux.SharedContexts{AllowWrites: c.SharedWrites || r.SharedWrites}
}

// Connect serves one CDP client of a session until it disconnects, the session ends or
// the caller's key is deleted. A paused session is thawed while a client is connected.
func (s *Service) Connect(ctx context.Context, c access.Caller, id string, client Client, conn Conn) error {
	l, err := s.running(ctx, c, id, access.Drive)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leave, err := s.deps.Keys.RegisterConnection(ctx, c, func(why error) {
		_ = conn.Close(mux.CloseKeyDeleted, access.KeyEnded(why)) // the client may have disconnected already
		cancel()
	})
	if err != nil {
		return err
	}
	defer leave()
	var admission mux.Admission // taken now, because Chrome may belong to another session when the client is served
	var left func(clients int)
	var shared *mux.SharedContexts
	chrome, _, giveBack, err := l.borrow(ctx)
	if err == nil {
		defer giveBack()
		err = l.ask(ctx, func() error {
			if err := l.usable(); err != nil {
				return err
			}
			chrome, admission = l.chrome, l.chrome.Admission()
			shared = client.shared(l.request)
			l.clients++
			left = l.runs.RecordConnected(l.clients)
			if l.rec.Status == profiles.StatusReady {
				l.setStatus(profiles.StatusRunning, profiles.Reason{})
			}
			return nil
		})
	}
	if err != nil {
		if errors.Is(err, ErrMoving) || fault.Is(err, fault.SessionEnding) || fault.Is(err, fault.SessionNotRunning) {
			// The client came just too late, and gets the same close code as the other
			// clients.
			_ = conn.Close(closeOf(err)) // the error below is what counts
		}
		return err
	}
	defer func() {
		// If the session has ended meanwhile, there is nothing to update.
		_ = l.ask(context.WithoutCancel(ctx), func() error {
			l.clients--
			left(l.clients)
			l.touch()
			if l.clients == 0 {
				select {
				case l.disconnected <- struct{}{}:
				default: // there is a token already
				}
			}
			l.freezeIfUnused()
			return nil
		})
	}()
	return chrome.Serve(ctx, conn, mux.ServeOptions{Target: target.ID(client.TargetID), Admission: admission, Shared: shared})
}
