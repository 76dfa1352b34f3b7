package restore

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
)

// lateTabDeadline bounds the wait for a tab that, if it comes at all, follows the
// others within milliseconds.
const lateTabDeadline = 2 * time.Second

// AwaitAll waits until every tab that Chrome opens with the profile is held: the
// requested blank tab, which may come last, and all that are open by then. spares is the
// number of pages that were open before.
func (h *Tabs) AwaitAll(ctx context.Context, spares int) error {
	for !slices.ContainsFunc(h.tabs, (*heldTab).blank) {
		if err := h.Await(ctx, len(h.tabs)+1); err != nil {
			return err
		}
	}
	open, err := capture.Pages(ctx, h.env.Driver)
	if err != nil {
		return err
	}
	return h.Await(ctx, len(open)-spares)
}

// blank reports whether a tab shows nothing. A tab that has just been created has no
// address yet.
func (t *heldTab) blank() bool { return t.info.URL == blankURL || t.info.URL == "" }

// chooseTabs decides which tabs to keep if the profile is older than its document. If the
// session files have the document's own tabs, it keeps these, with their back/forward
// lists, scroll positions and form data. Otherwise it keeps only the blank tab that came
// with them. It reports whether it kept the tabs of the session files, and closes the
// others.
//
// Chrome writes its session files up to 2.5 s late (Chromium's
// components/sessions/core/command_storage_manager.cc). So a tab that was opened or
// navigated just before the copy makes them differ.
func (h *Tabs) chooseTabs(ctx context.Context, doc state.Document) (bool, error) {
	for _, t := range h.tabs {
		history, err := h.historyOf(ctx, t)
		if err != nil {
			return false, err
		}
		t.history = history
	}
	own, blank := h.ownTabs(doc)
	if blank == nil && slices.ContainsFunc(doc.Tabs, func(t state.Tab) bool { return t.URL == blankURL }) {
		// A blank tab of the document came first. The requested one comes last.
		if err := h.awaitLateTab(ctx); err != nil {
			return false, err
		}
		own, blank = h.ownTabs(doc)
	}
	same := len(own) == len(doc.Tabs)
	if blank == nil { // the files have fewer tabs: the match is the requested blank tab
		same = false
		blank = h.tabs[max(0, slices.IndexFunc(h.tabs, (*heldTab).blank))]
	}
	same = same && len(doc.Tabs) > 0 && len(own) == len(h.tabs)-1
	var kept []*heldTab
	for _, t := range h.tabs {
		if same == (t != blank) {
			kept = append(kept, t)
			continue
		}
		// The tab never ran, so it sent no request to the site.
		if err := h.env.Browser.CloseTab(ctx, t.info.TargetID); err != nil {
			return false, err
		}
	}
	h.tabs = kept
	return same, nil
}

// ownTabs finds the held tabs that match the document's, and the requested blank tab
// beside them (nil if there is none).
func (h *Tabs) ownTabs(doc state.Document) (mine map[*heldTab]bool, blank *heldTab) {
	mine = map[*heldTab]bool{}
	for _, t := range h.match(doc.Tabs) {
		if t != nil {
			mine[t] = true
		}
	}
	for _, t := range h.tabs {
		if !mine[t] && t.blank() {
			blank = t
		}
	}
	return mine, blank
}

// awaitLateTab waits briefly for one more tab.
func (h *Tabs) awaitLateTab(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, lateTabDeadline)
	defer cancel()
	have := len(h.tabs)
	if err := h.Await(soon, have+1); err != nil {
		return ctx.Err() // its absence is not an error
	}
	for _, t := range h.tabs[have:] {
		history, err := h.historyOf(ctx, t)
		if err != nil {
			return err
		}
		t.history = history
	}
	return nil
}

// historyOf reads a held tab's back/forward list, which does not change. The browser
// process answers, although the tab waits.
func (h *Tabs) historyOf(ctx context.Context, t *heldTab) (*page.GetNavigationHistoryResult, error) {
	if t.list != nil {
		return t.list, nil
	}
	list, err := cdp.Call(ctx, h.env.Driver.Session(t.session), page.GetNavigationHistory, cdp.Empty{})
	if err == nil {
		t.list = &list
	}
	return &list, err
}

// entries counts a held tab's back/forward list without the page that it shows.
func (h *Tabs) entries(ctx context.Context, t *heldTab) int {
	if t.history == nil {
		history, err := h.historyOf(ctx, t)
		if err != nil {
			return 0
		}
		t.history = history
	}
	return len(t.history.Entries) - 1
}

// historyMatches reports whether a held tab's back/forward list is the saved one. Chrome
// may have kept fewer entries than were saved. So only the entries that it has are
// compared, aligned at the current one.
func (t *heldTab) historyMatches(tab state.Tab) bool {
	if t.history == nil {
		return true
	}
	shift := tab.Current - int(t.history.CurrentIndex)
	if shift < 0 || shift+len(t.history.Entries) > len(tab.History) {
		return false
	}
	for i, e := range t.history.Entries {
		if tab.History[shift+i].URL != e.URL {
			return false
		}
	}
	return true
}

// restoreStale restores the tabs of a document that is newer than the profile: from the
// session files if they have the same tabs, otherwise over CDP.
func (h *Tabs) restoreStale(ctx context.Context, doc state.Document) ([]state.Component, error) {
	if doc.TabsByURL {
		return h.reopen(ctx, doc), nil // there are no session files
	}
	same, err := h.chooseTabs(ctx, doc)
	switch {
	case err != nil:
		return nil, err
	case same:
		return h.releaseSessionTabs(ctx, doc, true), nil
	default:
		return h.reopen(ctx, doc), nil
	}
}
