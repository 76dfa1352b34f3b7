package browser

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/targetinit"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// openTabs opens the document's tabs in the shell, each with its own state in
// place before its first script. The blank tab becomes the first one, and stays
// where there is none to open.
func (b *Browser) openTabs(ctx context.Context, doc state.Document) ([]state.Component, error) {
	switch {
	case !doc.Complete:
		return []state.Component{{Name: state.ComponentTabs, Reason: report.NotRead.With("not read: which tabs there were is in files that the shell engine does not know")}}, nil
	case !b.options.RestoreTabs:
		return unopened(doc), nil
	}
	b.baseline.NoteByScript(true)
	h := &hold{b: b, direct: true}
	h.events, h.stop = b.driver.Events(heldEvents...)
	lines, err := h.openAll(ctx, doc)
	if err != nil {
		h.release(ctx)
		return nil, err
	}
	b.background.Go(func() { h.settle(b.ctx) })
	return lines, nil
}

// openAll makes all tabs first, for a renderer takes its time to start, and then
// sends them to their addresses. Navigations are begun and not awaited.
func (h *hold) openAll(ctx context.Context, doc state.Document) ([]state.Component, error) {
	open, err := capture.Pages(ctx, h.b.driver)
	if err != nil {
		return nil, err
	}
	ids := []target.ID{open[0].TargetID}
	for range len(doc.Tabs) - 1 {
		made, err := cdp.Call(ctx, h.b.driver, target.CreateTarget, target.CreateTargetParams{URL: blankURL})
		if err != nil {
			return nil, err
		}
		ids = append(ids, made.TargetID)
	}
	r := tabReport{saved: doc.Tabs, laid: true, lost: report.NotOpened.With("the tab could not be opened"),
		short: report.ListNotRestored.With("the shell engine opens tabs by URL, without their back/forward lists")}
	for i, tab := range doc.Tabs {
		t, err := h.tab(ctx, ids[i])
		back := err == nil && h.b.mux.AllowedURL(tab.URL)
		if back {
			back = h.load(ctx, t, tab) == nil
		}
		h.b.ahead.restored(ids[i], tab.Active)
		r.add(i, back, 0)
	}
	h.arrived(ctx)
	return r.lines(), nil
}

// tab attaches to a blank tab once it has what the session gives each.
func (h *hold) tab(ctx context.Context, id target.ID) (*heldTab, error) {
	ready := make(chan struct{})
	h.b.targets.WhenReady(id, func(*targetinit.Target) { close(ready) })
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	yes := true
	at, err := cdp.Call(ctx, h.b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		return nil, err
	}
	t := &heldTab{session: at.SessionID, info: &target.Info{TargetID: id, Type: "page", URL: blankURL}}
	h.tabs = append(h.tabs, t)
	return t, nil
}

// unopened reports the tabs of a document where none are wanted.
func unopened(doc state.Document) []state.Component {
	r := tabReport{saved: doc.Tabs, lost: report.TabsUnwanted.Reason()}
	for i := range doc.Tabs {
		r.add(i, false, 0)
	}
	return r.lines()
}
