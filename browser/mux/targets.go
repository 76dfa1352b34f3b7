package mux

import (
	"maps"
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// targetInfo is what the mux knows about a target (CDP Target.TargetInfo).
type targetInfo struct {
	TargetID         string `json:"targetId"`
	Type             string `json:"type"`
	URL              string `json:"url"`
	Title            string `json:"title"`
	BrowserContextID string `json:"browserContextId"`
	OpenerID         string `json:"openerId"`
	ParentID         string `json:"parentId"` // of a frame or a worker: the target that it is in
	Subtype          string `json:"subtype"`

	order int // position in the order of creation, from 1
	shown int // when it last came to the front, as a count; 0: it opened in the background
}

// targets holds every target of Chrome. The Mux's lock guards it.
type targets struct {
	all         map[string]targetInfo
	created     int                      // number of targets that ever existed
	activations int                      // how often a target came to the front
	hide        map[string]struct{}      // set by OpenHidden; includes those in departed
	departed    []string                 // hidden targets that have ended, oldest first; at most departedKept
	hideURL     map[string]string        // set by OpenHidden: address to target ID, "" before the ID is known
	hideAll     map[string]struct{}      // set by HideContext: contexts whose targets are hidden
	contexts    map[string]struct{}      // created by Target.createBrowserContext
	closing     map[string]struct{}      // a client has sent a command to close them
	redirecting map[string]struct{}      // pages that are leaving a foreign address, until RevealIfAllowed
	closed      map[string]chan struct{} // closed when the target has ended; see TargetClosed
	hadPage     bool
	firstPage   chan struct{} // closed when the first page that clients may see exists
	foreign     func(url string) bool
}

func newTargets(foreign func(url string) bool) targets {
	return targets{
		foreign: foreign,
		all:     map[string]targetInfo{}, hide: map[string]struct{}{}, hideURL: map[string]string{}, hideAll: map[string]struct{}{},
		contexts: map[string]struct{}{}, closing: map[string]struct{}{}, redirecting: map[string]struct{}{},
		closed: map[string]chan struct{}{}, firstPage: make(chan struct{}),
	}
}

func (t *targets) put(info targetInfo) {
	known := t.all[info.TargetID]
	if info.order, info.shown = known.order, known.shown; info.order == 0 {
		t.created++
		t.activations++
		info.order, info.shown = t.created, t.activations // a new page opens in front
	}
	t.all[info.TargetID] = info
	if _, ok := t.hideURL[info.URL]; ok && info.URL != "" {
		t.hide[info.TargetID] = struct{}{}
	}
	if t.usablePage(info) {
		t.hadPage = true
		select {
		case <-t.firstPage:
		default:
			close(t.firstPage)
		}
	}
}

// departedKept is how many ended hidden targets are remembered. The clients' own events
// of their end follow the mux's at once.
const departedKept = 1024

// conceal hides a target that OpenHidden opened with an address.
func (t *targets) conceal(id, url string) {
	t.hide[id] = struct{}{}
	t.hideURL[url] = id
	if _, there := t.all[id]; !there {
		t.depart(id)
	}
}

// depart remembers for some time that a hidden target has ended.
func (t *targets) depart(id string) {
	t.hide[id] = struct{}{}
	maps.DeleteFunc(t.hideURL, func(_, of string) bool { return of == id })
	if t.departed = append(t.departed, id); len(t.departed) > departedKept {
		delete(t.hide, t.departed[0])
		t.departed = t.departed[1:]
	}
}

// retain removes the browser contexts of clients, except these and those that contain a
// target.
func (t *targets) retain(contexts []string) {
	for _, info := range t.all {
		contexts = append(contexts, info.BrowserContextID)
	}
	maps.DeleteFunc(t.contexts, func(id string, _ struct{}) bool { return !slices.Contains(contexts, id) })
}

// remove removes a target that has ended. A hidden one stays hidden for some time,
// because the clients' own events of its end come after the mux's.
func (t *targets) remove(id string) {
	if t.hidden(id) {
		t.depart(id)
	}
	delete(t.all, id)
	delete(t.closing, id)
	delete(t.redirecting, id)
	if closed := t.closed[id]; closed != nil {
		close(closed)
		delete(t.closed, id)
	}
}

// hidden reports whether the target with this ID is hidden from clients.
func (t *targets) hidden(id string) bool {
	_, hide := t.hide[id]
	return hide || t.hiddenInfo(t.all[id])
}

// hiddenInfo reports whether a target is hidden from clients. That is every target that is
// not the session's, and developer tools, which send CDP commands that bypass the policy
// table. A session's page may navigate to developer tools.
func (t *targets) hiddenInfo(info targetInfo) bool {
	return t.internal(info) || scheme(info.URL) == "devtools"
}

// internal reports whether a target is never one of the session's. Either it is part of
// Chrome's own interface (omnibox pop-ups are chrome: pages of type browser_ui), or the
// daemon opened the target or its context for itself.
func (t *targets) internal(info targetInfo) bool {
	_, hide := t.hide[info.TargetID]
	_, hideURL := t.hideURL[info.URL]
	_, hideAll := t.hideAll[info.BrowserContextID]
	return info.Type == "browser_ui" || hide || hideURL && info.URL != "" || hideAll
}

// madeContext reports whether a client created a browser context.
func (t *targets) madeContext(id string) bool {
	_, made := t.contexts[id]
	return made
}

// usablePage reports whether a target is a page of the session's own profile that clients
// may use. One such page must stay open.
func (t *targets) usablePage(info targetInfo) bool {
	_, made := t.contexts[info.BrowserContextID]
	return info.Type == "page" && !made && !t.hidden(info.TargetID) && !t.foreign(info.URL)
}

// last reports whether no page that is a usablePage would be left without this target. A
// tab target stands for the page in it, so the ID may also be a tab's.
func (t *targets) last(id string) bool {
	info, known := t.all[id]
	if !known || info.Type != "tab" && !t.usablePage(info) {
		return false
	}
	spare := 0
	for _, other := range t.all {
		if _, closing := t.closing[other.TargetID]; t.usablePage(other) && !closing && other.TargetID != id {
			spare++
		}
	}
	if info.Type == "tab" {
		spare-- // the page of this tab was counted
	}
	return spare <= 0
}

// lastPageClosed returns true once after the last such page has closed.
func (t *targets) lastPageClosed() bool {
	if !t.hadPage {
		return false
	}
	for _, info := range t.all {
		if t.usablePage(info) {
			return false
		}
	}
	t.hadPage = false
	return true
}

// tabOf returns the ID of the tab that contains a page; "" if it is unknown. Chrome reports
// a tab directly before its page, and names neither in the other (Chrome 156, both
// engines).
func (t *targets) tabOf(page string) string {
	order := t.all[page].order
	for id, info := range t.all {
		if info.Type == "tab" && order > 0 && info.order == order-1 {
			return id
		}
	}
	return ""
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

// hiddenFrom reports whether a client must not see a target, because it is hidden, foreign, or
// another client's and the client has shared contexts. The Mux's lock is held.
func (m *Mux) hiddenFrom(p *peer, info targetInfo) bool {
	if m.targets.hidden(info.TargetID) || m.targets.hiddenInfo(info) {
		return true
	}
	if _, redirecting := m.targets.redirecting[info.TargetID]; redirecting {
		return true // its address may already be that of the next page
	}
	if p.contexts.hides(info.TargetID) {
		return true
	}
	return m.Addresses.foreign(info.URL) && (TargetPolicy || !m.sessions.attached(p, info.TargetID))
}

// HideContext hides a browser context from clients: its pages, and the tabs that contain
// them, which have separate IDs. It must be called before a client has seen one of them.
// Trusted peers still see them.
func (m *Mux) HideContext(id cdp.BrowserContextID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.targets.hideAll[string(id)] = struct{}{}
}

// HidePage hides a page from clients, and the tab that contains it, which has another ID. It
// must be called before a client has seen one of them. Trusted peers still see them.
func (m *Mux) HidePage(id target.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.targets.hide[string(id)] = struct{}{}
	if tab := m.targets.tabOf(string(id)); tab != "" {
		m.targets.hide[tab] = struct{}{}
	}
}

// FirstPage returns a channel that is closed once Chrome has had a page of the session's own
// profile that clients may see.
func (m *Mux) FirstPage() <-chan struct{} { return m.targets.firstPage }

// TargetClosed returns a channel that is closed once the target has ended, or at once if
// it is unknown.
func (m *Mux) TargetClosed(id target.ID) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	closed := m.targets.closed[string(id)]
	if closed == nil {
		closed = make(chan struct{})
		if _, there := m.targets.all[string(id)]; !there {
			close(closed)
			return closed
		}
		m.targets.closed[string(id)] = closed
	}
	return closed
}

// Pages returns the page targets that clients may see, in no particular order.
func (m *Mux) Pages() []target.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []target.ID
	for id, info := range m.targets.all {
		if _, redirecting := m.targets.redirecting[id]; info.Type == "page" && !redirecting && !m.targets.hidden(id) && !m.Addresses.foreign(info.URL) {
			ids = append(ids, target.ID(id))
		}
	}
	return ids
}
