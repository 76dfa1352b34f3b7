package mux

import (
	"maps"
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// targetInfo is what the mux knows of a target (CDP Target.TargetInfo).
type targetInfo struct {
	TargetID         string `json:"targetId"`
	Type             string `json:"type"`
	URL              string `json:"url"`
	Title            string `json:"title"`
	BrowserContextID string `json:"browserContextId"`

	born int // counts the targets in the order in which they were made
}

// targets is every target that Chrome has; the Mux's lock guards it.
type targets struct {
	all      map[string]targetInfo
	births   int                      // of all that there ever were
	hide     map[string]struct{}      // by OpenHidden, or in departed
	departed []string                 // hidden ones that have gone, oldest first; at most departedKept
	hideURL  map[string]string        // by OpenHidden: the target's ID, "" before it is known
	hideAll  map[string]struct{}      // by HideContext: what is in these contexts
	contexts map[string]struct{}      // made by Target.createBrowserContext
	leaving  map[string]struct{}      // a client has asked to close them
	away     map[string]struct{}      // pages that are sent away from what they may not show, until Settle
	gone     map[string]chan struct{} // closed when the target has gone; see Gone
	hadPage  bool
	paged    chan struct{} // closed when the first page that must stay is there
	foreign  func(url string) bool
}

func newTargets(foreign func(url string) bool) targets {
	return targets{
		foreign: foreign,
		all:     map[string]targetInfo{}, hide: map[string]struct{}{}, hideURL: map[string]string{}, hideAll: map[string]struct{}{},
		contexts: map[string]struct{}{}, leaving: map[string]struct{}{}, away: map[string]struct{}{},
		gone: map[string]chan struct{}{}, paged: make(chan struct{}),
	}
}

func (t *targets) put(info targetInfo) {
	if info.born = t.all[info.TargetID].born; info.born == 0 {
		t.births++
		info.born = t.births
	}
	t.all[info.TargetID] = info
	if _, ok := t.hideURL[info.URL]; ok && info.URL != "" {
		t.hide[info.TargetID] = struct{}{}
	}
	if t.kept(info) {
		t.hadPage = true
		select {
		case <-t.paged:
		default:
			close(t.paged)
		}
	}
}

// departedKept is how many hidden targets are remembered that have gone. The
// clients' own events of their end follow the mux's at once.
const departedKept = 1024

// conceal hides a target that OpenHidden has opened with an address.
func (t *targets) conceal(id, url string) {
	t.hide[id] = struct{}{}
	t.hideURL[url] = id
	if _, there := t.all[id]; !there {
		t.depart(id)
	}
}

// depart remembers that a hidden target has gone, for some time.
func (t *targets) depart(id string) {
	t.hide[id] = struct{}{}
	maps.DeleteFunc(t.hideURL, func(_, of string) bool { return of == id })
	if t.departed = append(t.departed, id); len(t.departed) > departedKept {
		delete(t.hide, t.departed[0])
		t.departed = t.departed[1:]
	}
}

// retain forgets the browser contexts that clients have made, but for these and
// those that a target is in.
func (t *targets) retain(contexts []string) {
	for _, info := range t.all {
		contexts = append(contexts, info.BrowserContextID)
	}
	maps.DeleteFunc(t.contexts, func(id string, _ struct{}) bool { return !slices.Contains(contexts, id) })
}

// remove forgets a target that is gone. One that was hidden stays so for some
// time: the clients' own events of its end come after the mux's.
func (t *targets) remove(id string) {
	if t.hidden(id) {
		t.depart(id)
	}
	delete(t.all, id)
	delete(t.leaving, id)
	delete(t.away, id)
	if gone := t.gone[id]; gone != nil {
		close(gone)
		delete(t.gone, id)
	}
}

// hidden says whether clients are not told of a target that is known by its ID.
func (t *targets) hidden(id string) bool {
	_, hide := t.hide[id]
	return hide || t.secret(t.all[id])
}

// secret says whether clients are not told of a target: one that is no session's, and
// developer tools, which speak CDP past the policy table. A session's page may turn to
// those.
func (t *targets) secret(info targetInfo) bool {
	return t.apart(info) || scheme(info.URL) == "devtools"
}

// apart says whether a target is never one of the session's: it is Chrome's own
// interface (omnibox pop-ups are chrome: pages of type browser_ui), or the daemon
// opened it or its context for itself.
func (t *targets) apart(info targetInfo) bool {
	_, hide := t.hide[info.TargetID]
	_, hideURL := t.hideURL[info.URL]
	_, hideAll := t.hideAll[info.BrowserContextID]
	return info.Type == "browser_ui" || hide || hideURL && info.URL != "" || hideAll
}

// kept says whether a target is a page of the session's own profile that clients
// may use, of which one must stay.
func (t *targets) kept(info targetInfo) bool {
	_, made := t.contexts[info.BrowserContextID]
	return info.Type == "page" && !made && !t.hidden(info.TargetID) && !t.foreign(info.URL)
}

// last says whether nothing that must stay would be left without this target.
// A tab target stands for the page in it, which is why any ID may be the last.
func (t *targets) last(id string) bool {
	info, known := t.all[id]
	if !known || info.Type != "tab" && !t.kept(info) {
		return false
	}
	spare := 0
	for _, other := range t.all {
		if _, leaving := t.leaving[other.TargetID]; t.kept(other) && !leaving && other.TargetID != id {
			spare++
		}
	}
	if info.Type == "tab" {
		spare-- // the page of this tab is among them
	}
	return spare <= 0
}

// emptied is true once after the last page that must stay has gone.
func (t *targets) emptied() bool {
	if !t.hadPage {
		return false
	}
	for _, info := range t.all {
		if t.kept(info) {
			return false
		}
	}
	t.hadPage = false
	return true
}

// unseen says whether a client is not told of a target: a hidden one, and a
// foreign one. The Mux's lock is held.
func (m *Mux) unseen(p *peer, info targetInfo) bool {
	if m.targets.hidden(info.TargetID) || m.targets.secret(info) {
		return true
	}
	if _, away := m.targets.away[info.TargetID]; away {
		return true // its address may be the next one's already
	}
	return m.Addresses.foreign(info.URL) && (TargetPolicy || !m.sessions.attached(p, info.TargetID))
}

// HideContext makes all that is in a browser context invisible to clients: its
// pages, and the tabs that these are in, which have IDs of their own. None should
// have reached a client. Trusted peers see them still.
func (m *Mux) HideContext(id cdp.BrowserContextID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.targets.hideAll[string(id)] = struct{}{}
}

// Paged is closed once Chrome has had a page of the session's own profile that
// clients may see.
func (m *Mux) Paged() <-chan struct{} { return m.targets.paged }

// Gone is closed once Chrome has told of a target's end, or did not have it.
func (m *Mux) Gone(id target.ID) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := m.targets.gone[string(id)]
	if gone == nil {
		gone = make(chan struct{})
		if _, there := m.targets.all[string(id)]; !there {
			close(gone)
			return gone
		}
		m.targets.gone[string(id)] = gone
	}
	return gone
}

// Pages returns the page targets that clients may see, in no order.
func (m *Mux) Pages() []target.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []target.ID
	for id, info := range m.targets.all {
		if _, away := m.targets.away[id]; info.Type == "page" && !away && !m.targets.hidden(id) && !m.Addresses.foreign(info.URL) {
			ids = append(ids, target.ID(id))
		}
	}
	return ids
}
