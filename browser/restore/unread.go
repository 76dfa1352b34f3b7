package restore

import (
	"context"
	"slices"
	"strings"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// restoreUnread releases what Chrome brought back of a datadir whose session files are all
// that tells of its tabs, for its Chrome died. Blank tabs close, the one that
// came with the profile and those that had not got further, but for one where
// there is no other. What a reading from before still has of the tabs' sessionStorage
// is applied.
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
		Reason: report.NotRead.With("as Chrome had last written them; nobody read which there were")}), nil
}

// applyOlder gives scripts to the tabs that a document from before the last ones knows with
// what it has of their sessionStorage, and window.name.
func (h *Tabs) applyOlder(ctx context.Context, doc state.Document) []state.Component {
	r := tabReport{byScript: true, lost: report.NotOpened.With("Chrome's session files, which are newer, have no tab that it could be laid down in")}
	last := h.front(doc)
	for i, t := range h.known(doc.Tabs) {
		tab := doc.Tabs[i]
		r.saved = append(r.saved, tab)
		r.add(i, t != nil, 0)
		if t == nil {
			continue
		}
		if t.info.URL != tab.URL {
			tab.Name, tab.URL = "", t.info.URL // another page may have set another since
		}
		for _, area := range tab.Session {
			h.env.Baseline.Unstored = append(h.env.Baseline.Unstored, state.Unstored{StorageKey: area.StorageKey, Items: len(area.Items), Lay: true})
		}
		if len(tab.Session) > 0 && t != last {
			h.activate(ctx, t) // a lazy tab has no navigation that is held: see restoreKept
		}
		h.addScript(t, tab)
	}
	if last != nil && len(h.tabs) > 1 {
		h.activate(ctx, last)
	}
	return r.storage
}

// front is the tab that was in front when the document was read; nil where the
// session files do not have it any more.
func (h *Tabs) front(doc state.Document) *heldTab {
	for i, t := range h.match(doc.Tabs) {
		if t != nil && doc.Tabs[i].Active {
			return t
		}
	}
	return nil
}

// known finds for each tab of a document that is older than the session files the
// held one that it has become: at its URL, else at some URL of an origin of which
// it has sessionStorage.
func (h *Tabs) known(tabs []state.Tab) []*heldTab {
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
