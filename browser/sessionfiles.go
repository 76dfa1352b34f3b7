package browser

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
)

// awaitAll waits until every tab that Chrome opens with the profile is held.
// By the time the first one attaches Chrome has made them all; spares are the
// pages that were there before.
func (h *hold) awaitAll(ctx context.Context, spares int) error {
	if err := h.await(ctx, 1); err != nil {
		return err
	}
	open, err := capture.Pages(ctx, h.b.driver)
	if err != nil {
		return err
	}
	return h.await(ctx, len(open)-spares)
}

// fromFiles decides which tabs a datadir that is older than its document
// brings back: those of the session files, with their back/forward lists,
// scroll positions and form data, if these are the document's own tabs; else
// none but the blank one that came with them. It reports which.
//
// Chrome writes its session files up to 2.5 s late (Chromium's
// components/sessions/core/command_storage_manager.cc), so that a tab opened
// or navigated just before the copy makes the difference.
func (h *hold) fromFiles(ctx context.Context, doc state.Document) (bool, error) {
	for _, t := range h.tabs {
		history, err := h.historyOf(ctx, t)
		if err != nil {
			return false, err
		}
		t.history = history
	}
	own := map[*heldTab]bool{}
	same := true
	for _, t := range h.match(doc.Tabs) {
		if t == nil {
			same = false
			break
		}
		own[t] = true
	}
	var blank *heldTab
	for _, t := range h.tabs {
		if !own[t] && t.info.URL == "about:blank" {
			blank = t
		}
	}
	if blank == nil {
		return false, errors.New("the blank tab did not come up")
	}
	same = same && len(doc.Tabs) > 0 && len(own) == len(h.tabs)-1
	var kept []*heldTab
	for _, t := range h.tabs {
		if same == (t != blank) {
			kept = append(kept, t)
			continue
		}
		// It never ran, so the site does not hear of it.
		if err := h.b.closeTab(ctx, t.info.TargetID); err != nil {
			return false, err
		}
	}
	h.tabs = kept
	return same, nil
}

// historyOf reads a held tab's back/forward list: Chrome itself answers, though
// the tab waits.
func (h *hold) historyOf(ctx context.Context, t *heldTab) (*page.GetNavigationHistoryResult, error) {
	history, err := cdp.Call(ctx, h.b.driver.Session(t.session), page.GetNavigationHistory, cdp.Empty{})
	return &history, err
}

// entries counts a held tab's back/forward list without the page it shows.
func (h *hold) entries(ctx context.Context, t *heldTab) int {
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

// renew brings back the tabs of a document that is newer than the datadir:
// from the session files where these say the same, else over CDP.
func (h *hold) renew(ctx context.Context, doc state.Document) ([]state.Component, error) {
	same, err := h.fromFiles(ctx, doc)
	switch {
	case err != nil:
		return nil, err
	case same:
		return h.resume(ctx, doc, true), nil
	default:
		return h.reopen(ctx, doc), nil
	}
}
