package mux

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maker is the client that made a page, by a command or by one of its pages.
type maker struct {
	peer    *peer
	context string // the made-up context of the page; "": the default one
}

// heldEvent is an event that waits until it is known who made a page.
type heldEvent struct {
	msg []byte
	e   envelope
}

// maxHeld bounds the events that a client's connection holds back. Chrome answers
// Target.createTarget right after the events of the new page, so few are held.
const maxHeld = 1000

// claim records who made a page, from the answer to Target.createTarget.
func (t *targets) claim(page string, by maker) {
	delete(t.unclaimed, page)
	if _, there := t.all[page]; there {
		t.makers[page] = by
	}
}

// attribute records who made a new page. The page of an opener is its opener's. Any other may
// be that of a Target.createTarget that Chrome has not answered.
func (t *targets) attribute(info targetInfo, creating bool) {
	if info.Type != "page" {
		return
	}
	if by, made := t.makers[info.OpenerID]; made {
		t.makers[info.TargetID] = by
	} else if creating && info.OpenerID == "" {
		t.unclaimed[info.TargetID] = struct{}{}
	}
}

// claim records which client made a page, from the answer to Target.createTarget.
func (m *Mux) claim(p *pending, e *envelope) {
	var r struct {
		TargetID string `json:"targetId"`
	}
	if p.peer.trusted || json.Unmarshal(e.result, &r) != nil {
		return
	}
	m.mu.Lock()
	m.targets.claim(r.TargetID, maker{p.peer, p.context})
	orphan := p.peer.left && p.context != ""
	m.mu.Unlock()
	if orphan {
		m.closePage(r.TargetID)
	}
}

// list replaces the contexts of an answer to Target.getBrowserContexts by the client's.
func (s *sharedContexts) list(e *envelope) {
	var all fields
	if all.read(e.result) != nil {
		return
	}
	s.mux.mu.Lock()
	ids := append([]string{}, s.contexts...)
	s.mux.mu.Unlock()
	if all.set("browserContextIds", ids) == nil {
		e.result = all.write()
	}
}

// makerOf returns who made a page, also for the tab that contains it.
func (t *targets) makerOf(id string) (maker, bool) {
	if info := t.all[id]; info.Type == "tab" {
		id = t.pageOf(info)
	}
	by, ok := t.makers[id]
	return by, ok
}

// pageOf returns the ID of the page in a tab; "" if it is unknown; see tabOf.
func (t *targets) pageOf(tab targetInfo) string {
	for id, info := range t.all {
		if info.Type == "page" && info.order == tab.order+1 {
			return id
		}
	}
	return ""
}

// undecided reports whether it is not known yet who made a target. That is a new page while a
// client waits for an answer to Target.createTarget, and the tab of such a page. Chrome reports
// a tab directly before its page.
func (t *targets) undecided(id string) bool {
	info, known := t.all[id]
	if known && info.Type == "tab" {
		page := t.pageOf(info)
		if page == "" {
			return info.order == t.created
		}
		id = page
	}
	_, unclaimed := t.unclaimed[id]
	return unclaimed
}

// hides reports whether a target is a page of another client. s may be nil: then the client sees
// the pages of all. The Mux's lock is held.
func (s *sharedContexts) hides(id string) bool {
	if s == nil {
		return false
	}
	by, made := s.mux.targets.makerOf(id)
	return made && by.peer != s.owner
}

// hold holds back an event for the client while it is not known whose a page is. Later events of
// the client are held too, so that they stay in order. The Mux's lock is held.
func (s *sharedContexts) hold(msg []byte, e envelope, t targetEvent) bool {
	id := t.TargetInfo.TargetID
	if id == "" {
		id = t.TargetID
	}
	if len(s.held) == 0 && (id == "" || !s.mux.targets.undecided(id)) || len(s.held) >= maxHeld {
		return false
	}
	s.held = append(s.held, heldEvent{msg, e})
	s.mux.holding.Store(true)
	return true
}

// settle routes the held events whose pages are decided now. Only the pipe's reader calls it.
func (m *Mux) settle() {
	var held []heldEvent
	m.mu.Lock()
	if !m.requests.creating() {
		clear(m.targets.unclaimed)
	}
	m.holding.Store(false)
	for s := range m.shared {
		held, s.held = append(held, s.held...), nil
	}
	m.mu.Unlock()
	for _, h := range held {
		m.dispatch(h.msg, h.e)
	}
}

// stamp puts the made-up context of the client's page into a description of the page, or
// returns it unchanged. s may be nil. The Mux's lock is held.
func (s *sharedContexts) stamp(info jsontext.Value) jsontext.Value {
	if s == nil {
		return info
	}
	var is struct {
		TargetID string `json:"targetId"`
	}
	if json.Unmarshal(info, &is) != nil {
		return info
	}
	by, made := s.mux.targets.makerOf(is.TargetID)
	if !made || by.peer != s.owner || by.context == "" {
		return info
	}
	var all fields
	if all.read(info) != nil || all.set("browserContextId", by.context) != nil {
		return info
	}
	return all.write()
}

// stampMember stamps the targetInfo of an event's parameters, or of an answer.
func (s *sharedContexts) stampMember(params []byte) ([]byte, bool) {
	var all fields
	if all.read(params) != nil || all["targetInfo"] == nil {
		return params, false
	}
	s.mux.mu.Lock()
	stamped := s.stamp(all["targetInfo"])
	s.mux.mu.Unlock()
	all["targetInfo"] = stamped
	return all.write(), true
}

// creating reports whether Chrome has not answered a client's Target.createTarget.
func (r *requests) creating() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pending {
		if p.method == "Target.createTarget" && p.peer != nil && !p.peer.trusted {
			return true
		}
	}
	return false
}
