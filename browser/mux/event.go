package mux

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// targetEvent holds what the mux needs of an event of CDP's Target domain.
type targetEvent struct {
	SessionID  string     `json:"sessionId"`
	TargetID   string     `json:"targetId"`
	TargetInfo targetInfo `json:"targetInfo"`
	Waiting    bool       `json:"waitingForDebugger"`
}

var targetDomain = []byte("Target.")

// decodeTarget decodes the parameters of an event of the Target domain. Most events are of other
// domains, and allocate no targetEvent.
func decodeTarget(params []byte) (targetEvent, error) {
	var t targetEvent
	err := json.Unmarshal(params, &t)
	return t, err
}

// routeEvent passes an event to the owner of the session that it arrived on. Events of
// the Target domain also change who owns which session. Events about targets that clients
// must not see are dropped.
func (m *Mux) routeEvent(msg []byte, e envelope) {
	m.dispatch(m.trackDownload(msg, e))
	if len(e.session) == 0 && m.shared.holding {
		m.shared.releaseHeld() // the page of a tab may be known now
	}
}

// dispatch is routeEvent without the processing of downloads.
func (m *Mux) dispatch(msg []byte, e envelope) {
	var t targetEvent
	ofTarget := bytes.HasPrefix(e.method, targetDomain)
	if ofTarget {
		var err error
		if t, err = decodeTarget(e.params); err != nil {
			return
		}
	}
	listener := m.listening.Load()
	wanted := listener.wants(e)
	m.mu.Lock()
	if len(e.session) == 0 {
		var notify []func()
		if ofTarget {
			notify = m.rootEvent(string(e.method), t)
		}
		m.mu.Unlock()
		for _, f := range notify {
			f()
		}
		return
	}
	s := m.sessions.all[string(e.session)]
	if s == nil {
		m.mu.Unlock()
		return // its peer has disconnected
	}
	if !s.owner.trusted && m.Addresses.showsForeign(e) {
		notify := append(m.revoke(s), m.release)
		m.mu.Unlock()
		for _, f := range notify {
			f()
		}
		return
	}
	if contexts := s.owner.contexts; contexts != nil {
		if contexts.mustHold(t) {
			m.mu.Unlock()
			m.shared.hold(contexts, held{msg: msg, e: e})
			return
		}
		if contexts.hidesDownload(e) {
			m.mu.Unlock()
			return
		}
	}
	if wanted {
		m.notifyEvent(listener, s, e)
	}
	pass, notify := true, []func(){}
	if ofTarget {
		pass, notify = m.ownerEvent(s, string(e.method), t)
	}
	if string(e.method) == "Target.detachedFromTarget" {
		notify = append(notify, m.release)
	}
	owner := s.owner
	m.mu.Unlock()
	if pass {
		owner.event(msg, e)
	}
	for _, f := range notify {
		f()
	}
}

// rootEvent processes an event of the mux's own session. The lock is held. The caller
// runs the returned functions without the lock.
func (m *Mux) rootEvent(method string, t targetEvent) (notify []func()) {
	switch method {
	case "Target.detachedFromTarget":
		if s := m.sessions.all[t.SessionID]; s != nil {
			return m.sessions.remove(s)
		}
	case "Target.targetCreated", "Target.targetInfoChanged":
		m.targets.put(t.TargetInfo)
		if method == "Target.targetCreated" {
			notify = m.shared.targetCreated(t.TargetInfo)
		}
		m.notifyTarget(method, t.TargetInfo)
		return append(notify, m.checkShown(t.TargetInfo)...)
	case "Target.targetCrashed":
		m.notifyTarget(method, m.targets.all[t.TargetID])
	case "Target.targetDestroyed":
		m.notifyTarget(method, m.targets.all[t.TargetID])
		m.targets.remove(t.TargetID)
		m.shared.owners.remove(t.TargetID)
		if m.opts.KeepPage && !m.closing && m.targets.lastPageClosed() {
			return []func(){func() { m.openBlank(func(*cdpError) {}) }}
		}
	}
	return nil
}

// ownerEvent processes an event for the owner of s and reports whether the owner may
// receive it. The lock is held. The caller runs the returned functions without the lock.
func (m *Mux) ownerEvent(s *session, method string, t targetEvent) (pass bool, notify []func()) {
	id := t.TargetInfo.TargetID
	if id == "" {
		id = t.TargetID
	}
	if method == "Target.attachedToTarget" && !s.owner.trusted {
		m.shared.owners.addPrerender(s, t.TargetInfo)
	}
	hidden := !s.owner.trusted && (m.targets.hidden(id) || m.hiddenFrom(s.owner, t.TargetInfo))
	switch method {
	case "Target.attachedToTarget":
		now, attached := m.targets.all[id], t.SessionID // the function must not keep t
		if now.TargetID = id; hidden || !s.owner.trusted && m.hiddenFrom(s.owner, now) {
			return false, []func(){func() { m.detach(s.id, attached) }}
		}
		m.sessions.adopt(s, t.SessionID, id)
		m.sessions.all[t.SessionID].paused = t.Waiting && !s.owner.trusted
		return true, nil
	case "Target.detachedFromTarget":
		child := m.sessions.all[t.SessionID]
		if child == nil || child.owner != s.owner {
			return false, nil
		}
		return true, m.sessions.remove(child)
	default:
		return !hidden, nil
	}
}

// learn updates the mux's records from an answer, and removes from the answer what the
// requesting peer must not see. It runs before the peer gets the answer.
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
			m.listening.Load().noteEmptyContext(p.peer)
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
	case "Target.createTarget":
		if p.creates() {
			m.shared.pageCreated(p.kept.by, e)
		}
		m.learnFront(p, e)
	case "Target.activateTarget", "Page.bringToFront":
		m.learnFront(p, e)
	}
	p.peer.contexts.stampAnswer(p.method, e)
}

// EmptyContext is the method of a [PageEvent] for a client that has created a browser context,
// the first time. Such a context has nothing of the session's environment.
const EmptyContext = "Stasis.emptyContext"

// noteEmptyContext reports EmptyContext. l may be nil. The Mux's lock is held.
func (l *listener) noteEmptyContext(p *peer) {
	if l == nil || p.trusted || p.emptyContext {
		return
	}
	p.emptyContext = true
	l.notify(PageEvent{Method: EmptyContext})
}

// CommandRefused is the method of a [PageEvent] for a command of a client that the policy
// refuses, the first time that the client sends it. Params has the method.
const CommandRefused = "Stasis.commandRefused"

// A client can make up methods. Of one client, this many are reported, if they are not
// longer than this.
const maxRefused, maxMethod = 100, 128

// noteRefused reports CommandRefused.
func (m *Mux) noteRefused(p *peer, method string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.listening.Load()
	if l == nil || p.trusted || p.refused[method] || len(p.refused) >= maxRefused || len(method) > maxMethod {
		return
	}
	if p.refused == nil {
		p.refused = map[string]bool{}
	}
	p.refused[method] = true
	params, _ := json.Marshal(map[string]string{"method": method}) // a text
	l.notify(PageEvent{Method: CommandRefused, Params: params})
}

// made reports whether a client created the browser context.
func (m *Mux) made(context string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.targets.madeContext(context)
}

// contextsKept is how many browser contexts of clients are recorded before the mux checks
// with Chrome which of them still exist.
const contextsKept = 256

// recount removes the contexts that Chrome no longer has. Chrome sends no event when one
// ends.
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

// learnSession records the session that an answer gives to the peer. Chrome's event of
// the session comes before the answer. If the peer must not see the target, the answer
// becomes an error.
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
	_ = json.Unmarshal(p.params(), &asked) // without parameters it is the browser's session
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions.all[p.session]
	if s == nil || m.sessions.all[r.SessionID] != nil {
		return
	}
	info := m.targets.all[asked.TargetID]
	info.TargetID = asked.TargetID
	if asked.TargetID != "" && !p.peer.trusted && m.hiddenFrom(p.peer, info) {
		e.result, e.err = nil, noTarget
		return
	}
	m.sessions.adopt(s, r.SessionID, asked.TargetID)
}

// noTarget is the error that Chrome itself returns for an unknown target.
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
		if json.Unmarshal(raw, &info) == nil && !m.hiddenFrom(p, info) {
			seen = append(seen, raw)
		}
	}
	m.mu.Unlock()
	r.TargetInfos = seen
	if b, err := json.Marshal(r); err == nil {
		e.result = b
	}
}
