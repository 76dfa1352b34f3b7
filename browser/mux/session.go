package mux

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/stasisd/stasis/fault"
)

// peer is one user of the pipe: a client, or a driver of the daemon.
type peer struct {
	lane         *lane
	trusted      bool // the policy table does not apply
	root         string
	event        func(msg []byte, e envelope) // gets an event for the peer; must not wait
	gone         func()                       // called when Chrome detached its root session
	ended        func(session string)         // called when one of its sessions was detached; may be nil
	left         bool
	emptyContext bool            // it has created a browser context of Chrome
	refused      map[string]bool // methods that were refused and reported
	contexts     *contextSet     // its shared contexts; nil: its contexts are Chrome's
}

// session is a CDP session with its owner and the session on which it was attached.
type session struct {
	id       string
	owner    *peer
	target   string
	parent   *session
	children map[*session]struct{}
	watch    watch
	answers  answers
	paused   bool // a client attached to a target that waits for it
}

// attach gives p its root session: of the browser, or of one page if target is not empty.
// It returns when ctx ends. A session that arrives later is detached.
func (m *Mux) attach(ctx context.Context, p *peer, target string) error {
	method, params := "Target.attachToBrowserTarget", "{}"
	if target != "" {
		text, err := json.Marshal(map[string]any{"targetId": target, "flatten": true})
		if err != nil {
			return fault.Wrap(err, fault.InvalidRequest, "mux.attach", "the target ID is malformed")
		}
		method, params = "Target.attachToTarget", string(text)
	}
	result := make(chan error, 1)
	answer := func(e envelope) {
		var r struct {
			SessionID string `json:"sessionId"`
		}
		if e.err != nil || json.Unmarshal(e.result, &r) != nil || r.SessionID == "" {
			result <- fault.New(fault.NotFound, "mux.attach", "no such target")
			return
		}
		m.mu.Lock()
		left := p.left
		info := m.targets.all[target]
		info.TargetID = target
		if target != "" && !p.trusted && m.hiddenFrom(p, info) {
			m.mu.Unlock()
			m.detach("", r.SessionID)
			result <- fault.New(fault.NotFound, "mux.attach", "no such target")
			return
		}
		if !left {
			p.root = r.SessionID
			m.sessions.all[r.SessionID] = &session{id: r.SessionID, owner: p, target: target, children: map[*session]struct{}{}}
		}
		m.mu.Unlock()
		if left {
			m.detach("", r.SessionID)
		}
		result <- nil
	}
	m.command("", method, params, answer, func() { result <- m.Err() })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// detach makes Chrome drop a session that was attached on parent.
func (m *Mux) detach(parent, id string) {
	params, err := json.Marshal(map[string]string{"sessionId": id})
	if err == nil {
		m.command(parent, "Target.detachFromTarget", string(params), func(envelope) {}, nil)
	}
}

// leave removes a peer: its sessions and its pending requests.
func (m *Mux) leave(p *peer) {
	p.lane.drop()
	m.mu.Lock()
	p.left = true
	root := p.root
	m.sessions.leave(p)
	// The answers of creations are still needed: a page of a shared context closes then.
	m.requests.take(func(w *pending) bool { return w.peer == p && (p.contexts == nil || !w.creates()) })
	m.shared.forget(p)
	m.mu.Unlock()
	m.release()
	if root != "" {
		m.detach("", root)
	}
}

// lookup finds the session for a peer's message; see [sessions.find].
func (m *Mux) lookup(p *peer, id []byte) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions.find(p, id)
}
