package restore

import (
	"context"
	"encoding/json"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// keepBlank releases the held blank tab unchanged: no tabs are wanted.
func (h *Tabs) keepBlank(ctx context.Context, doc state.Document) ([]state.Component, error) {
	for _, t := range h.tabs {
		_ = h.runBlank(ctx, t) // the tab exists even if this fails
	}
	return unopenedLines(doc), nil
}

// reopen opens the document's tabs over CDP, for a profile whose session files are older
// than the document. The held blank tab becomes the first one. The tabs are set up one
// after the other. Their pages then load in parallel, and reopen waits for them only
// briefly.
func (h *Tabs) reopen(ctx context.Context, doc state.Document) []state.Component {
	h.env.Baseline.NoteByScript(true)
	r := tabReport{saved: doc.Tabs, byScript: true, lost: report.NotOpened.With("the tab could not be opened"),
		short: report.ListNotRestored.With("the tabs had changed since Chrome last wrote its session files, so they were reopened by URL")}
	if doc.Chrome.Engine == engineShell {
		r.short = report.ListNotRestored.With("the shell engine, which saved them, has no session files, so they were reopened by URL")
	}
	opened := make([]*heldTab, len(doc.Tabs))
	for i, tab := range doc.Tabs {
		if !h.env.Browser.AllowedURL(tab.URL) {
			r.add(i, false, 0)
			continue
		}
		t, err := h.tabFor(ctx, i)
		if err != nil {
			r.add(i, false, 0)
			continue
		}
		opened[i] = t
		err = h.runBlank(ctx, t)
		if err == nil {
			err = h.load(ctx, t, tab)
		}
		if err != nil {
			r.add(i, false, 0)
			continue
		}
		r.add(i, true, 0)
	}
	for i, tab := range doc.Tabs {
		if tab.Active && opened[i] != nil && len(doc.Tabs) > 1 {
			h.activate(ctx, opened[i])
		}
	}
	if len(opened) == 0 || opened[0] == nil {
		_ = h.runBlank(ctx, h.tabs[0]) // the tab exists even if this fails
	}
	h.env.Baseline.NoteTabs(idsOf(opened))
	h.awaitDocuments(ctx)
	return r.lines()
}

// idsOf returns the IDs of tabs; "" for nil.
func idsOf(tabs []*heldTab) []string {
	ids := make([]string, len(tabs))
	for i, t := range tabs {
		if t != nil {
			ids[i] = string(t.info.TargetID)
		}
	}
	return ids
}

// load navigates a running blank tab to its address, with its script in place. The
// renderer handles the script and the browser process the navigation, so load waits for
// the answer to the script before it navigates.
func (h *Tabs) load(ctx context.Context, t *heldTab, tab state.Tab) error {
	if tab.URL == "about:blank" {
		return nil
	}
	h.env.PendingTabs.add(t.info.TargetID, tab)
	if script := t.prepare(tab); script != "" {
		if err := t.script.set(ctx, h.env, t.session, script); err != nil {
			return err
		}
		h.watchFrames(t.session)
	}
	h.startLoading(t)
	// The next call that waits for an answer reports a lost pipe.
	_ = h.env.Driver.PostAnswered(h.env.Life, t.session, page.Navigate.Method, page.NavigateParams{URL: tab.URL}, func(result []byte) {
		var answer page.NavigateResult
		if json.Unmarshal(result, &answer) == nil && answer.ErrorText != "" {
			h.env.PendingTabs.failed(t.info.TargetID, answer.ErrorText)
		}
	})
	return nil
}

// tabFor returns a held blank page for the i-th tab: for the first, the page that came
// with the profile; for the others, a new one.
func (h *Tabs) tabFor(ctx context.Context, i int) (*heldTab, error) {
	if i == 0 {
		return h.tabs[0], nil
	}
	have := len(h.tabs)
	if _, err := cdp.Call(ctx, h.env.Driver, target.CreateTarget, target.CreateTargetParams{URL: "about:blank"}); err != nil {
		return nil, err
	}
	if err := h.Await(ctx, have+1); err != nil {
		return nil, err
	}
	return h.tabs[have], nil
}
