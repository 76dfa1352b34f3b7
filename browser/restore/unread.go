package restore

import (
	"context"
	"slices"
	"strings"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// restoreUnread releases the tabs that Chrome restored from a profile whose Chrome died.
// Its session files are the only record of its tabs. It closes blank tabs: the one that
// came with the profile, and those that had not loaded anything. One stays if there is no
// other tab. It applies what an earlier reading still has of the tabs' sessionStorage.
func (h *Tabs) restoreUnread(ctx context.Context, doc state.Document) ([]state.Component, error) {
	var blank []*heldTab
	for _, t := range h.tabs {
		if t.blank() {
			blank = append(blank, t)
		}
	}
	lines := h.applyOlder(ctx, doc)
	for _, t := range h.tabs {
		h.run(t)
	}
	tabs := len(h.tabs) - len(blank)
	if tabs == 0 {
		blank = blank[min(1, len(blank)):]
	}
	for _, t := range blank {
		if err := h.env.Browser.CloseTab(ctx, t.info.TargetID); err != nil {
			return nil, err
		}
	}
	return append(lines, state.Component{Name: state.ComponentTabs, Saved: tabs, Restored: tabs,
		Reason: report.NotRead.With("these are the tabs that Chrome last wrote to disk; the open tabs were not read before it ended")}), nil
}

// applyOlder handles tabs of a document that is older than the session files. It adds
// scripts to the tabs that the document knows, which apply its sessionStorage and
// window.name.
func (h *Tabs) applyOlder(ctx context.Context, doc state.Document) []state.Component {
	r := tabReport{byScript: true, lost: report.NotOpened.With("Chrome's session files are newer and have no tab that it belongs to")}
	last := h.front(doc)
	for i, t := range h.matchOlder(doc.Tabs) {
		tab := doc.Tabs[i]
		r.saved = append(r.saved, tab)
		r.add(i, t != nil, 0)
		if t == nil {
			continue
		}
		if t.info.URL != tab.URL {
			tab.Name, tab.URL = "", t.info.URL // another page may have changed the name since
		}
		for _, area := range tab.Session {
			h.env.Baseline.Unstored = append(h.env.Baseline.Unstored, state.Unstored{StorageKey: area.StorageKey, Items: len(area.Items), Apply: true})
		}
		if len(tab.Session) > 0 && t != last {
			h.activate(ctx, t) // a lazy tab starts its navigation only in front: see releaseSessionTabs
		}
		h.addScript(t, tab)
	}
	if last != nil && len(h.tabs) > 1 {
		h.activate(ctx, last)
	}
	return r.storage
}

// front returns the tab that was in front when the document was read; nil if the session
// files do not have it any more.
func (h *Tabs) front(doc state.Document) *heldTab {
	for i, t := range h.match(doc.Tabs) {
		if t != nil && doc.Tabs[i].Active {
			return t
		}
	}
	return nil
}

// matchOlder finds for each tab of a document that is older than the session files the
// held tab that continues it: one at its URL, otherwise one at any URL of an origin of
// which it has sessionStorage.
func (h *Tabs) matchOlder(tabs []state.Tab) []*heldTab {
	found := h.match(tabs)
	for i, tab := range tabs {
		if found[i] != nil {
			continue
		}
		at := slices.IndexFunc(h.tabs, func(t *heldTab) bool {
			return !slices.Contains(found, t) && slices.ContainsFunc(tab.Session, func(a state.Area) bool { return strings.HasPrefix(t.info.URL, a.StorageKey) })
		})
		if at >= 0 {
			found[i] = h.tabs[at]
		}
	}
	return found
}
