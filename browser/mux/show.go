package mux

import (
	"github.com/chromedp/cdproto/target"
)

// Allowed reports whether a known target shows only what it may.
func (m *Mux) Allowed(id target.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, away := m.targets.away[string(id)]
	return !away && !m.Addresses.Foreign(m.targets.all[string(id)].URL)
}

// Settle makes a page visible to clients again after it has left a foreign address. It
// returns false, and the page stays invisible, if the page still shows a foreign address.
func (m *Mux) Settle(id target.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Addresses.Foreign(m.targets.all[string(id)].URL) {
		return false
	}
	delete(m.targets.away, string(id))
	return true
}

// Foreign is the method of a [Heard] for a page that navigated to an address that it may
// not show.
const Foreign = "Stasis.foreign"

// follow processes the address that a target now shows. If the target may not show it,
// clients lose their sessions of the target at once, with their added scripts, events and
// pending answers. The lock is held. The caller runs the returned functions without it.
func (m *Mux) follow(info targetInfo) (tell []func()) {
	if !TargetPolicy || !m.Addresses.foreign(info.URL) || m.targets.apart(info) {
		return nil
	}
	for _, s := range m.sessions.all {
		if s.target == info.TargetID && !s.owner.trusted {
			tell = append(tell, m.cut(s)...)
		}
	}
	if _, away := m.targets.away[info.TargetID]; away || info.Type != "page" {
		return tell
	}
	if l := m.listening.Load(); l != nil {
		l.hear(Heard{Method: Foreign, Target: info.TargetID, Type: info.Type, URL: info.URL})
	}
	if f := m.Hooks.turnedForeign(); f != nil {
		m.targets.away[info.TargetID] = struct{}{}
		tell = append(tell, func() { f(target.ID(info.TargetID)) })
	}
	return tell
}

// cut removes a client's session and those that were attached on it. The client gets the
// event that Chrome would send, and its pending requests fail. The lock is held. The
// caller runs the returned functions without it.
func (m *Mux) cut(s *session) (tell []func()) {
	for _, p := range m.requests.take(func(p *pending) bool { return p.peer == s.owner && m.sessions.below(p.session, s) }) {
		tell = append(tell, func() {
			p.answer(envelope{err: []byte(`{"code":-32001,"message":"Session with given id not found."}`)})
		})
	}
	parent, owner := "", s.owner
	if s.parent != nil {
		parent = s.parent.id
		e := envelope{method: []byte("Target.detachedFromTarget"), session: []byte(parent),
			params: []byte(`{"sessionId":"` + s.id + `","targetId":"` + s.target + `"}`)}
		tell = append(tell, func() { owner.event(event(e, parent), e) })
	}
	return append(append(tell, m.sessions.orphan(s)...), func() { m.detach(parent, s.id) })
}
