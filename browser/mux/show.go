package mux

import (
	"github.com/chromedp/cdproto/target"
)

// Allowed reports whether a known target shows only what it may.
func (m *Mux) Allowed(id target.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, redirecting := m.targets.redirecting[string(id)]
	return !redirecting && !m.Addresses.Foreign(m.targets.all[string(id)].URL)
}

// Foreign is the method of a [PageEvent] for a page that navigated to an address that it may
// not show.
const Foreign = "Stasis.foreign"

// checkShown processes the address that a target now shows. If the target may not show it,
// clients lose their sessions of the target at once, with their added scripts, events and
// pending answers. The lock is held. The caller runs the returned functions without it.
func (m *Mux) checkShown(info targetInfo) (notify []func()) {
	if !TargetPolicy || !m.Addresses.foreign(info.URL) || m.targets.internal(info) {
		return nil
	}
	for _, s := range m.sessions.all {
		if s.target == info.TargetID && !s.owner.trusted {
			notify = append(notify, m.revoke(s)...)
		}
	}
	if _, redirecting := m.targets.redirecting[info.TargetID]; redirecting || info.Type != "page" {
		return notify
	}
	if l := m.listening.Load(); l != nil {
		l.notify(PageEvent{Method: Foreign, Target: info.TargetID, Type: info.Type, URL: info.URL})
	}
	if f := m.Hooks.foreignHook(); f != nil {
		m.targets.redirecting[info.TargetID] = struct{}{}
		notify = append(notify, func() { f(target.ID(info.TargetID)) })
	}
	return notify
}

// revoke removes a client's session and those that were attached on it. The client gets the
// event that Chrome would send, and its pending requests fail. The lock is held. The
// caller runs the returned functions without it.
func (m *Mux) revoke(s *session) (notify []func()) {
	for _, p := range m.requests.take(func(p *pending) bool { return p.peer == s.owner && m.sessions.below(p.session, s) }) {
		notify = append(notify, func() {
			p.answer(envelope{err: []byte(`{"code":-32001,"message":"Session with given id not found."}`)})
		})
	}
	parent, owner := "", s.owner
	if s.parent != nil {
		parent = s.parent.id
		e := envelope{method: []byte("Target.detachedFromTarget"), session: []byte(parent),
			params: []byte(`{"sessionId":"` + s.id + `","targetId":"` + s.target + `"}`)}
		notify = append(notify, func() { owner.event(event(e, parent), e) })
	}
	return append(append(notify, m.sessions.remove(s)...), func() { m.detach(parent, s.id) })
}
