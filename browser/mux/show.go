package mux

import (
	"maps"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/target"
)

// newTabPages are what Chrome itself opens where no address is given. They show no
// files and lead to none (seen with 156).
var newTabPages = []string{"chrome://newtab/", "chrome://new-tab-page/", "chrome://new-tab-page-third-party/"}

// extensions are those of a session.
type extensions interface {
	owns(id string) bool
	ids() []string
}

// ownExtensions are the IDs of the extensions that a session asked for.
type ownExtensions map[string]struct{}

// owns says whether an extension is one of the session's.
func (m *Mux) owns(id string) bool {
	own := m.extensions.Load()
	if own == nil {
		return false
	}
	_, ok := (*own)[id]
	return ok
}

// ids are the session's extensions, in order.
func (m *Mux) ids() []string {
	own := m.extensions.Load()
	if own == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(*own))
}

// SetExtensions names the session's own extensions, by ID: of all chrome-extension:
// addresses targets may show only theirs. Without a call they may show none.
func (m *Mux) SetExtensions(ids []string) {
	own := ownExtensions{}
	for _, id := range ids {
		own[id] = struct{}{}
	}
	m.extensions.Store(&own)
}

// AllowedURL reports whether a target of this session may show an address. It is the
// one rule for clients' navigations, for what targets turn to, for back lists and for
// restored tabs.
func (m *Mux) AllowedURL(url string) bool { return m.checkURL(url) == nil }

func (m *Mux) checkURL(url string) error { return checkURL(url, m.owns) }

// ForeignURL reports whether a target that shows an address shows what it may not.
// Chrome's own new tab page and error pages are not meant: no client opens them, and
// they show no files.
func (m *Mux) ForeignURL(url string) bool { return TargetPolicy && m.foreign(url) }

// foreign says whether a target shows something that it may not, such as
// chrome://settings in a tab that an extension opened.
func (m *Mux) foreign(url string) bool {
	if url == "" || slices.Contains(newTabPages, url) {
		return false // not loaded yet, or Chrome's new tab page
	}
	return m.checkURL(url) != nil && scheme(url) != "chrome-error"
}

// Allowed reports whether a target that the mux knows shows what it may.
func (m *Mux) Allowed(id target.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.ForeignURL(m.targets.all[string(id)].URL)
}

// OnForeign has f called for each page that shows what it may not, whenever it
// turns to such an address. The clients' sessions are gone by then. f must not wait.
func (m *Mux) OnForeign(f func(id target.ID)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turned = f
}

// Foreign is the method of [Heard] for a page that turned to an address that it may
// not show.
const Foreign = "Stasis.foreign"

// follow takes what a target shows from now on. Where it may not show it, clients
// lose their sessions of it at once: with them go their added scripts, the events
// and the answers that are still to come. The lock is held; what it returns is to
// be done without.
func (m *Mux) follow(info targetInfo) (tell []func()) {
	if !TargetPolicy || !m.foreign(info.URL) || m.targets.secret(info) || m.targets.hidden(info.TargetID) {
		return nil
	}
	for _, s := range m.sessions {
		if s.target == info.TargetID && !s.owner.trusted {
			tell = append(tell, m.cut(s)...)
		}
	}
	if info.Type != "page" {
		return tell
	}
	if l := m.listening.Load(); l != nil {
		l.hear(Heard{Method: Foreign, Target: info.TargetID, Type: info.Type, URL: info.URL})
	}
	if f := m.turned; f != nil {
		tell = append(tell, func() { f(target.ID(info.TargetID)) })
	}
	return tell
}

// cut takes a client's session away, with those that were attached on it. The client
// hears of it as it would from Chrome, and what it waits for ends with an error. The
// lock is held; what it returns is to be done without.
func (m *Mux) cut(s *session) (tell []func()) {
	for id, p := range m.pending {
		if p.peer == s.owner && m.below(p.session, s) {
			delete(m.pending, id)
			tell = append(tell, func() {
				p.answer(envelope{err: []byte(`{"code":-32001,"message":"Session with given id not found."}`)})
			})
		}
	}
	parent, owner := "", s.owner
	if s.parent != nil {
		parent = s.parent.id
		e := envelope{method: []byte("Target.detachedFromTarget"), session: []byte(parent),
			params: []byte(`{"sessionId":"` + s.id + `","targetId":"` + s.target + `"}`)}
		tell = append(tell, func() { owner.event(event(e, parent), e) })
	}
	return append(append(tell, m.orphan(s)...), func() { m.detach(parent, s.id) })
}

// below says whether a session is another one or was attached on it, at any depth.
func (m *Mux) below(id string, top *session) bool {
	for s := m.sessions[id]; s != nil; s = s.parent {
		if s == top {
			return true
		}
	}
	return false
}

// turnedForeign says whether an event of a client's session tells that a frame of it
// shows what it may not: the context in which scripts run there. Such an event comes
// before whatever those scripts say, and may come before Chrome tells of the target.
func (m *Mux) turnedForeign(s *session, e envelope) bool {
	if !TargetPolicy || s.owner.trusted || string(e.method) != "Runtime.executionContextCreated" {
		return false
	}
	const key = `"origin":"`
	_, origin, found := strings.Cut(string(e.params), key)
	if !found {
		return false
	}
	origin, _, _ = strings.Cut(origin, `"`)
	switch scheme(origin) {
	case "file", "chrome", "chrome-untrusted", "chrome-search", "devtools":
		return !strings.HasPrefix(origin, "chrome://new")
	case "chrome-extension":
		return m.checkURL(origin) != nil && !m.contentScript(e.params)
	}
	return false
}

// contentScript says whether a script context is an extension's in another's page.
func (m *Mux) contentScript(params []byte) bool {
	return strings.Contains(string(params), `"type":"isolated"`)
}
