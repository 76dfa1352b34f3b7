package mux

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// targetEvent is what the mux reads of the events of CDP's Target domain.
type targetEvent struct {
	SessionID  string     `json:"sessionId"`
	TargetID   string     `json:"targetId"`
	TargetInfo targetInfo `json:"targetInfo"`
}

var targetDomain = []byte("Target.")

// routeEvent hands an event to the owner of the session that it arrived on.
// Events of the Target domain move ownership on their way, and those about
// targets that clients must not see end here.
func (m *Mux) routeEvent(msg []byte, e envelope) {
	var t targetEvent
	ofTarget := bytes.HasPrefix(e.method, targetDomain)
	if ofTarget && json.Unmarshal(e.params, &t) != nil {
		return
	}
	listener := m.listening.Load()
	heard := listener.audible(e)
	m.mu.Lock()
	if len(e.session) == 0 {
		var tell []func()
		if ofTarget {
			tell = m.rootEvent(string(e.method), t)
		}
		m.mu.Unlock()
		for _, f := range tell {
			f()
		}
		return
	}
	s := m.sessions.all[string(e.session)]
	if s == nil {
		m.mu.Unlock()
		return // its peer has left
	}
	if !s.owner.trusted && m.Addresses.turned(e) {
		tell := m.cut(s)
		m.mu.Unlock()
		for _, f := range tell {
			f()
		}
		return
	}
	if heard {
		m.tellHeard(listener, s, e)
	}
	pass, tell := true, []func(){}
	if ofTarget {
		pass, tell = m.ownerEvent(s, string(e.method), t)
	}
	owner := s.owner
	m.mu.Unlock()
	if pass {
		owner.event(msg, e)
	}
	for _, f := range tell {
		f()
	}
}

// rootEvent takes an event of the mux's own session, under the lock.
func (m *Mux) rootEvent(method string, t targetEvent) (tell []func()) {
	switch method {
	case "Target.detachedFromTarget":
		if s := m.sessions.all[t.SessionID]; s != nil {
			return m.sessions.orphan(s)
		}
	case "Target.targetCreated", "Target.targetInfoChanged":
		m.targets.put(t.TargetInfo)
		m.tellTarget(method, t.TargetInfo)
		return m.follow(t.TargetInfo)
	case "Target.targetCrashed":
		m.tellTarget(method, m.targets.all[t.TargetID])
	case "Target.targetDestroyed":
		m.tellTarget(method, m.targets.all[t.TargetID])
		m.targets.remove(t.TargetID)
		if m.opts.KeepPage && !m.closing && m.targets.emptied() {
			return []func(){func() { m.openBlank(func(*cdpError) {}) }}
		}
	}
	return nil
}

// ownerEvent takes an event for the owner of s, under the lock, and says
// whether the owner may have it.
func (m *Mux) ownerEvent(s *session, method string, t targetEvent) (pass bool, tell []func()) {
	id := t.TargetInfo.TargetID
	if id == "" {
		id = t.TargetID
	}
	hidden := !s.owner.trusted && (m.targets.hidden(id) || m.unseen(s.owner, t.TargetInfo))
	switch method {
	case "Target.attachedToTarget":
		now := m.targets.all[id]
		if now.TargetID = id; hidden || !s.owner.trusted && m.unseen(s.owner, now) {
			return false, []func(){func() { m.detach(s.id, t.SessionID) }}
		}
		m.sessions.adopt(s, t.SessionID, id)
		return true, nil
	case "Target.detachedFromTarget":
		child := m.sessions.all[t.SessionID]
		if child == nil || child.owner != s.owner {
			return false, nil
		}
		return true, m.sessions.orphan(child)
	default:
		return !hidden, nil
	}
}

// learn reads from an answer what the mux must know, and takes out what the
// asker must not. It runs before the asker sees the answer.
func (m *Mux) learn(p *pending, e *envelope) {
	if p.peer == nil || e.err != nil {
		return
	}
	switch p.method {
	case "Target.attachToTarget", "Target.attachToBrowserTarget":
		m.learnSession(p, e)
	case "Target.createBrowserContext":
		var r struct {
			ID string `json:"browserContextId"`
		}
		if json.Unmarshal(e.result, &r) == nil {
			m.mu.Lock()
			m.targets.contexts[r.ID] = struct{}{}
			recount := len(m.targets.contexts) > contextsKept
			m.mu.Unlock()
			if recount {
				m.recount()
			}
		}
	case "Browser.setPermission", "Browser.grantPermissions", "Browser.resetPermissions":
		if !p.peer.trusted {
			m.Permissions.note(p, m.made)
		}
	case "Target.getTargets":
		if !p.peer.trusted {
			m.filterTargets(p.peer, e)
		}
	}
}

// made says whether a client made a browser context.
func (m *Mux) made(context string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, made := m.targets.contexts[context]
	return made
}

// contextsKept is how many browser contexts of clients are remembered before
// Chrome is asked which of them it still has.
const contextsKept = 256

// recount forgets the contexts that Chrome has no more: no event tells of their end.
func (m *Mux) recount() {
	m.command("", "Target.getBrowserContexts", "{}", func(e envelope) {
		var r struct {
			IDs []string `json:"browserContextIds"`
		}
		if e.err == nil && json.Unmarshal(e.result, &r) == nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.targets.retain(r.IDs)
		}
	}, nil)
}

// learnSession takes the session that an answer gives to the asker. Chrome's event of
// it comes first; where the asker was not to have it, the answer becomes an error.
func (m *Mux) learnSession(p *pending, e *envelope) {
	var r struct {
		SessionID string `json:"sessionId"`
	}
	var asked struct {
		TargetID string `json:"targetId"`
	}
	if json.Unmarshal(e.result, &r) != nil || r.SessionID == "" {
		return
	}
	_ = json.Unmarshal(p.params, &asked) // without parameters it is the browser's
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions.all[p.session]
	if s == nil || m.sessions.all[r.SessionID] != nil {
		return
	}
	info := m.targets.all[asked.TargetID]
	info.TargetID = asked.TargetID
	if asked.TargetID != "" && !p.peer.trusted && m.unseen(p.peer, info) {
		e.result, e.err = nil, noTarget
		return
	}
	m.sessions.adopt(s, r.SessionID, asked.TargetID)
}

// noTarget is Chrome's own answer where there is no such target.
var noTarget = fmt.Appendf(nil, `{"code":%d,"message":%q}`, codeParams, errNoTarget)

func (m *Mux) filterTargets(p *peer, e *envelope) {
	var r struct {
		TargetInfos []jsontext.Value `json:"targetInfos"`
	}
	if json.Unmarshal(e.result, &r) != nil {
		return
	}
	seen := make([]jsontext.Value, 0, len(r.TargetInfos))
	m.mu.Lock()
	for _, raw := range r.TargetInfos {
		var info targetInfo
		if json.Unmarshal(raw, &info) == nil && !m.unseen(p, info) {
			seen = append(seen, raw)
		}
	}
	m.mu.Unlock()
	r.TargetInfos = seen
	if b, err := json.Marshal(r); err == nil {
		e.result = b
	}
}
