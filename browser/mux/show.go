package mux

import (
	"github.com/chromedp/cdproto/target"
)

// Allowed reports whether a target that the mux knows shows what it may.
func (m *Mux) Allowed(id target.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, away := m.targets.away[string(id)]
	return !away && !m.Addresses.Foreign(m.targets.all[string(id)].URL)
}

// Settle lets clients see a page again that has left for an address that it may show.
// It reports whether the page shows what it may; if not, clients still do not see it.
func (m *Mux) Settle(id target.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Addresses.Foreign(m.targets.all[string(id)].URL) {
		return false
	}
	delete(m.targets.away, string(id))
	return true
}

// Foreign is the method of [Heard] for a page that turned to an address that it may
// not show.
const Foreign = "Stasis.foreign"

// follow takes what a target shows from now on. Where it may not show it, clients
// lose their sessions of it at once: with them go their added scripts, the events
// and the answers that are still to come. The lock is held; what it returns is to
// be done without.
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

// cut takes a client's session away, with those that were attached on it. The client
// hears of it as it would from Chrome, and what it waits for ends with an error. The
// lock is held; what it returns is to be done without.
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
