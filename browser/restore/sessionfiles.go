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

// stragglerDeadline bounds the wait for a tab that follows others within
// milliseconds, if it comes at all.
const stragglerDeadline = 2 * time.Second

// AwaitAll waits until every tab that Chrome opens with the profile is held:
// the blank one that was asked for, which may come last, and all that are there
// by then; spares are the pages that were there before.
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

// blank reports whether a tab shows nothing. One that has only just been made
// has no address yet.
func (t *heldTab) blank() bool { return t.info.URL == blankURL || t.info.URL == "" }

// fromFiles decides which tabs a datadir that is older than its document
// brings back: those of the session files, with their back/forward lists,
// scroll positions and form data, if these are the document's own tabs; else
// none but the blank one that came with them. It reports which.
//
// Chrome writes its session files up to 2.5 s late (Chromium's
// components/sessions/core/command_storage_manager.cc), so that a tab opened
// or navigated just before the copy makes the difference.
func (h *Tabs) fromFiles(ctx context.Context, doc state.Document) (bool, error) {
	for _, t := range h.tabs {
		history, err := h.historyOf(ctx, t)
		if err != nil {
			return false, err
		}
		t.history = history
	}
	own, blank := h.own(doc)
	if blank == nil && slices.ContainsFunc(doc.Tabs, func(t state.Tab) bool { return t.URL == blankURL }) {
		// A blank tab of the document came; the one that was asked for comes last.
		if err := h.straggler(ctx); err != nil {
			return false, err
		}
		own, blank = h.own(doc)
	}
	same := len(own) == len(doc.Tabs)
	if blank == nil { // the files have fewer: what stands for a tab of the document is the one asked for
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
		// It never ran, so the site does not hear of it.
		if err := h.env.Browser.CloseTab(ctx, t.info.TargetID); err != nil {
			return false, err
		}
	}
	h.tabs = kept
	return same, nil
}

// own finds which held tabs are the document's own, as far as they match, and
// the blank one that was asked for beside them; nil where there is none.
func (h *Tabs) own(doc state.Document) (mine map[*heldTab]bool, blank *heldTab) {
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

// straggler waits for one more tab, if it comes soon.
func (h *Tabs) straggler(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, stragglerDeadline)
	defer cancel()
	have := len(h.tabs)
	if err := h.Await(soon, have+1); err != nil {
		return ctx.Err() // that it does not come is no failure
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

// historyOf reads a held tab's back/forward list: Chrome itself answers, though
// the tab waits.
func (h *Tabs) historyOf(ctx context.Context, t *heldTab) (*page.GetNavigationHistoryResult, error) {
	history, err := cdp.Call(ctx, h.env.Driver.Session(t.session), page.GetNavigationHistory, cdp.Empty{})
	return &history, err
}

// entries counts a held tab's back/forward list without the page it shows.
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

// agrees reports whether a held tab's back/forward list is the saved one.
// Chrome may have kept fewer entries than there were, so the entries it has
// are compared, from the current one outwards.
func (t *heldTab) agrees(tab state.Tab) bool {
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

// restoreStale brings back the tabs of a document that is newer than the datadir:
// from the session files where these say the same, else over CDP.
func (h *Tabs) restoreStale(ctx context.Context, doc state.Document) ([]state.Component, error) {
	if doc.TabsByURL {
		return h.reopen(ctx, doc), nil // there are no session files
	}
	same, err := h.fromFiles(ctx, doc)
	switch {
	case err != nil:
		return nil, err
	case same:
		return h.restoreKept(ctx, doc, true), nil
	default:
		return h.reopen(ctx, doc), nil
	}
}
