package mux

import (
	"bytes"
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
	_, away := m.targets.away[string(id)]
	return !away && !m.ForeignURL(m.targets.all[string(id)].URL)
}

// OnForeign has f called for each page that turns to an address that it may not show,
// once until [Mux.Settle]. The clients' sessions are gone by then. Clients do not see
// the page until Settle: the address that Chrome reports is the next one's while the
// document of the last is still there. f must not wait.
func (m *Mux) OnForeign(f func(id target.ID)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turned = f
}

// Settle lets clients see a page again that has left for an address that it may show.
// It reports whether the page shows what it may; if not, clients still do not see it.
func (m *Mux) Settle(id target.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ForeignURL(m.targets.all[string(id)].URL) {
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
	if !TargetPolicy || !m.foreign(info.URL) || m.targets.apart(info) {
		return nil
	}
	for _, s := range m.sessions {
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
	if f := m.turned; f != nil {
		m.targets.away[info.TargetID] = struct{}{}
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
// shows what it may not: the context in which scripts run there, or a request that
// waits for the client, who could read or make the answer. Such an event comes before
// whatever those scripts say, and may come before Chrome tells of the target.
func (m *Mux) turnedForeign(s *session, e envelope) bool {
	if !TargetPolicy || s.owner.trusted {
		return false
	}
	switch string(e.method) {
	case "Runtime.executionContextCreated":
		origin := member(e.params, `"origin":"`)
		return privileged(origin) || scheme(origin) == "chrome-extension" && m.checkURL(origin) != nil && !m.contentScript(e.params)
	case "Fetch.requestPaused":
		// Sites look for extensions, and a PDF is shown by one: those may go on.
		return bytes.Contains(e.params, aDocumentRequest) && privileged(member(e.params, `"url":"`))
	}
	return false
}

var aDocumentRequest = []byte(`"resourceType":"Document"`)

// member gives the first text in JSON after a name, as it is written there.
func member(params []byte, name string) string {
	_, rest, _ := bytes.Cut(params, []byte(name))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

// privileged says whether an address is a file's or a page's of Chrome's own.
func privileged(url string) bool {
	switch scheme(url) {
	case "file", "chrome", "chrome-untrusted", "chrome-search", "devtools":
		return !strings.HasPrefix(url, "chrome://new")
	}
	return false
}

// contentScript says whether a script context is an extension's in another's page.
func (m *Mux) contentScript(params []byte) bool {
	return strings.Contains(string(params), `"type":"isolated"`)
}
