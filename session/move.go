package session

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/save"
)

// A move of a session to another node has two steps. This node saves the session and ends it as
// moved, in one transaction. Then another node resumes it (moved.go). After the first step any
// node can take the second, so that the session continues also if this one dies.

// ErrMoving is the error of calls that came while their session moved to another node, or just
// after. They can be repeated there: nothing of them was carried out.
var ErrMoving = fault.New(fault.NodeUnavailable, "session.move", "the session moves to another node; try again")

// ErrInterrupted is the error of calls that used the browser when their session began to move to
// another node. Those that only read can be repeated there. Others may have been carried out: a
// page that was being opened may have reached its site.
var ErrInterrupted = fault.New(fault.NodeUnavailable, "session.move",
	"the session began to move to another node during the call, which may have been carried out; look before you try again")

// interrupted returns the error of a call that failed with err because an ending took the browser
// away. The cause of useCtx, which that ending has cancelled, says why.
func interrupted(useCtx context.Context, err error) error {
	const op = "session.use"
	if errors.Is(context.Cause(useCtx), ErrMoving) {
		return fault.Wrap(errors.Join(ErrInterrupted, err), fault.CodeOf(ErrInterrupted), op, fault.MessageOf(ErrInterrupted))
	}
	return save.PreemptedError(useCtx, err, op)
}

// livesElsewhere reports whether a session that does not live on node n lives on another one, or is
// about to.
func livesElsewhere(n Node, rec profiles.Session) bool {
	if n.ID() == "" {
		return false
	}
	if rec.EndedAt.IsZero() {
		return rec.NodeID != "" && rec.NodeID != n.ID()
	}
	return rec.Reason.Code == profiles.ReasonMoved
}

// closeOf returns how a client is closed whose session ends because of an error.
func closeOf(why error) (code int, reason string) {
	if errors.Is(why, ErrMoving) {
		return mux.CloseRestarting, save.Restarting
	}
	return mux.CloseSessionEnded, "session_ended"
}

// Destinations are the other nodes, to which sessions can move and from which they come.
type Destinations interface {
	// For returns the IDs of those that have room for a session of an engine, saved by this
	// node's Chrome; the best first.
	For(ctx context.Context, sessionID, engine string) ([]string, error)
	// Take has a node continue a session that was ended as moved.
	Take(ctx context.Context, nodeID, sessionID string) error
	// Files reads the downloads and uploads of a session that a node has ended as moved; see
	// [NodeSessions.Give]. The error is node_not_found if that node has no lease.
	Files(ctx context.Context, nodeID, sessionID string) (io.ReadCloser, error)
}

// noDestinations is for a node that knows no others.
type noDestinations struct{}

func (noDestinations) For(context.Context, string, string) ([]string, error) { return nil, nil }
func (noDestinations) Take(context.Context, string, string) error            { return ErrMoving }
func (noDestinations) Files(context.Context, string, string) (io.ReadCloser, error) {
	return nil, ErrMoving
}

const (
	// movePause is how long a session stays after a move of it has failed, and how long a node
	// does not try again to continue one.
	movePause = time.Minute
	// moveTime is how long nodes try to continue a session that was ended as moved.
	moveTime = 10 * time.Minute
)

// mover moves the sessions of a node to others. Its methods are safe for concurrent use.
type mover struct {
	s  *Service
	to Destinations

	mu      sync.Mutex
	staying map[string]stay      // by session
	failed  map[string]time.Time // by session: when takeEach, which one goroutine calls, could not continue it
}

// stay is why a session could not be moved, and when that is tried again.
type stay struct {
	reason string
	until  time.Time
}

// Staying returns the sessions that could not be moved.
func (m *mover) Staying() []placement.Staying {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []placement.Staying
	for id, why := range m.staying {
		if len(all) < placement.MaxStaying && m.s.sessions.Find(id) != nil {
			all = append(all, placement.Staying{SessionID: id, Reason: why.reason})
		}
	}
	return all
}

// move tries to move each session once, some at a time. stops says that the daemon stops:
// what no node takes at once stays ended, and any node continues it later.
func (m *mover) move(ctx context.Context, stops bool, all []*liveSession) {
	gate := make(chan struct{}, max(m.s.cfg.Savers, 1))
	var group sync.WaitGroup
	for _, l := range all {
		if m.waits(l.id) && !stops {
			continue
		}
		group.Go(func() {
			select {
			case gate <- struct{}{}:
			case <-ctx.Done():
				return
			}
			defer func() { <-gate }()
			if ctx.Err() == nil {
				m.record(l.id, m.moveOne(ctx, l, stops))
			}
		})
	}
	group.Wait()
}

// waits reports whether a move of a session has failed a short time ago.
func (m *mover) waits(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.deps.Now().Before(m.staying[id].until)
}

// record records why a session could not be moved; the zero stay: it was.
func (m *mover) record(id string, why stay) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for known := range m.staying {
		if m.s.sessions.Find(known) == nil {
			delete(m.staying, known)
		}
	}
	switch {
	case why.reason == "":
		delete(m.staying, id)
	case m.staying[id].reason != why.reason:
		m.s.deps.Log.Warn("a session stays on this node, which is drained", "session", id, "reason", why.reason)
		fallthrough
	default:
		m.staying[id] = why
	}
}

// moveOne moves a session. It returns why the session stays; the zero value: it was moved, or
// ends.
func (m *mover) moveOne(ctx context.Context, l *liveSession, stops bool) stay {
	engine, dir, why, err := m.mayMove(ctx, l)
	if err == nil && why == "" && !stops {
		why, err = downloading(dir)
	}
	switch {
	case fault.Is(err, fault.SessionNotRunning), errors.Is(err, ErrMoving):
		return stay{} // it has ended
	case err != nil:
		return stay{reason: fault.MessageOf(err)}
	case why != "":
		return stay{reason: why}
	}
	nodes, err := m.to.For(ctx, l.id, engine)
	if err != nil {
		return stay{reason: fault.MessageOf(err)}
	}
	if len(nodes) == 0 {
		return stay{reason: "no other node has a free place, the engine and a Chrome that is new enough"}
	}
	e, err := l.end(ctx, ending{cause: causeMove})
	if err == nil {
		err = e.Err
	}
	switch {
	case fault.Is(err, fault.SessionNotRunning), fault.Is(err, fault.SessionEnding):
		return stay{}
	case err != nil && !e.SessionEnded:
		m.keepsFiles(ctx, l.id)
		return m.cannot("it could not be saved: " + fault.MessageOf(err))
	}
	return m.handOver(ctx, l.id, nodes, stops)
}

func (m *mover) cannot(reason string) stay {
	return stay{reason, m.s.deps.Now().Add(movePause)}
}

// handOver has another node continue a session that was ended as moved. If none does, this node
// continues it, unless its daemon stops.
func (m *mover) handOver(ctx context.Context, id string, nodes []string, stops bool) stay {
	var err error
	for _, node := range nodes {
		if err = m.to.Take(ctx, node, id); err == nil {
			m.s.left.drop(id)
			m.s.deps.Log.Info("a session was moved to another node", "session", id, "node", node)
			return stay{}
		}
		m.s.deps.Log.Warn("another node does not continue a session that was moved", "session", id, "node", node, "error", err)
		if fault.Is(err, fault.RequestInProgress) {
			return stay{} // yet another one has begun to
		}
	}
	if stops {
		return stay{}
	}
	why := m.cannot("no other node continues it: " + fault.MessageOf(err))
	switch err := m.take(ctx, id); {
	case err == nil:
		m.s.left.drop(id)
	case fault.Is(err, fault.RequestInProgress):
		return stay{}
	default:
		m.s.deps.Log.Error("a session that was to move could not be started again; the next node that can continues it", "session", id, "error", err)
	}
	return why
}

// mayMove returns why a session cannot be moved; "": it can. The error is session_not_running if
// it ends.
func (m *mover) mayMove(ctx context.Context, l *liveSession) (engine string, dir *browser.Dir, why string, err error) {
	if _, err := m.callerOf(ctx, l.rights.MadeBy[0]); err != nil {
		return "", nil, "its key cannot be used: " + fault.MessageOf(err), nil
	}
	err = l.ask(ctx, func() error {
		engine, dir = l.request.Engine, l.dir
		switch {
		case l.ending != nil:
			return notRunning(l.id)
		case l.chrome == nil:
			why = "it has failed: " + l.rec.Reason.Text
		case l.request.Connects():
			why = "it ends with its connection (GET /v1/connect)"
		case l.request.ReadOnly:
			why = "it is read_only, so nothing of it is saved"
		case l.request.DiscardOnEnd:
			why = "its on_timeout is discard, so nothing of it is saved"
		}
		return nil
	})
	return engine, dir, why, err
}

// downloading returns why a session stays while a download runs, which the end of its Chrome would
// cut off.
func downloading(dir *browser.Dir) (why string, err error) {
	if running, err := dir.Downloads().Unfinished(); err != nil || !running {
		return "", err
	}
	return "a download of it still runs; it moves when that has ended", nil
}
