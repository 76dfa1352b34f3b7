package restore

import (
	"slices"
	"sync"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// PendingTabs holds the restored tabs whose page has not loaded yet, as they were saved:
// their site is down or has not answered. Chrome does not have the saved state of such a
// tab, so a reading takes it from here.
type PendingTabs struct {
	mu     sync.Mutex
	tabs   map[target.ID]state.Tab
	errors map[target.ID]string // of the first navigation, as far as Chrome has answered it
}

// failed records why the navigation of a restored tab failed, such as
// "net::ERR_CONNECTION_REFUSED".
func (p *PendingTabs) failed(id target.ID, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.errors == nil {
		p.errors = map[target.ID]string{}
	}
	p.errors[id] = why
}

// ErrorOf returns why the navigation of a restored tab failed; "" if that is not known.
func (p *PendingTabs) ErrorOf(id target.ID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errors[id]
}

func (p *PendingTabs) add(id target.ID, tab state.Tab) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tabs == nil {
		p.tabs = map[target.ID]state.Tab{}
	}
	p.tabs[id] = tab
}

func (p *PendingTabs) remove(id target.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tabs, id)
}

// Correct corrects a reading's tabs that have not loaded: it sets the address that each
// is loading. It returns the saved state of each by its index. unwritten reports that one
// of them has shown nothing yet, so that Chrome's session files lack its address. Correct
// forgets the tabs that have loaded, and those that show another address.
func (p *PendingTabs) Correct(tabs []state.Tab) (saved map[int]state.Tab, unwritten bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	saved = map[int]state.Tab{}
	for i := range tabs {
		id := target.ID(tabs[i].TargetID)
		was, waits := p.tabs[id]
		switch {
		case !waits:
			tabs[i].Unloaded = false // it failed, or did not answer, after it had loaded
		case nowhere(tabs[i]) && slices.Contains([]string{"", blankURL, was.URL}, tabs[i].URL):
			tabs[i].URL, tabs[i].Title, tabs[i].Unloaded = was.URL, was.Title, true
			tabs[i].History, tabs[i].Current = was.History, was.Current
			saved[i], unwritten = was, true
		case tabs[i].Unloaded && tabs[i].URL == was.URL:
			tabs[i].Title = was.Title
			saved[i] = was
		default:
			delete(p.tabs, id)
		}
	}
	return saved, unwritten
}

// Complete corrects a reading's tabs, and adds the saved state of those that have not
// loaded. unwritten is the result of Correct.
func (p *PendingTabs) Complete(tabs []state.Tab) (unwritten bool) {
	all, unwritten := p.Correct(tabs)
	for i, saved := range all {
		tab := &tabs[i]
		tab.ErrorPage = false // it has never loaded
		if tab.Name == "" {
			tab.Name = saved.Name
		}
		for _, area := range saved.Session {
			if !slices.ContainsFunc(tab.Session, func(a state.Area) bool { return a.StorageKey == area.StorageKey }) {
				tab.Session = append(tab.Session, area)
			}
		}
	}
	return unwritten
}

// nowhere reports whether a tab has never shown anything but a blank page.
func nowhere(tab state.Tab) bool {
	return !slices.ContainsFunc(tab.History, func(e state.HistoryEntry) bool { return e.URL != "" && e.URL != blankURL })
}
