package restore

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/targetinit"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// OpenTabs opens the document's tabs in the shell, each with its own state in place
// before its first script. The blank tab becomes the first one, and stays open if there
// is none to open. OpenTabs returns report lines and the tabs in the document's order. It
// returns no tabs if they are not wanted or not known.
func (e Environment) OpenTabs(ctx context.Context, doc state.Document, wanted bool, background func(func())) (lines []state.Component, ids []target.ID, err error) {
	switch {
	case !doc.Complete:
		return []state.Component{{Name: state.ComponentTabs, Reason: report.NotRead.With("not read: the tabs are listed in session files, which the shell engine cannot read")}}, nil, nil
	case !wanted:
		return unopenedLines(doc), nil, nil
	}
	e.Baseline.NoteByScript(true)
	h := &Tabs{env: e, direct: true}
	h.events, h.stop = e.Driver.Events(heldEvents...)
	lines, ids, err = h.openAll(ctx, doc)
	if err != nil {
		h.end(ctx)
		return nil, nil, err
	}
	background(func() { h.Settle(e.Life) })
	return lines, ids, nil
}

// openAll creates all tabs first, because a renderer takes time to start, and then
// navigates them. It does not wait for the navigations to end.
func (h *Tabs) openAll(ctx context.Context, doc state.Document) (lines []state.Component, ids []target.ID, err error) {
	open, err := capture.Pages(ctx, h.env.Driver)
	if err != nil {
		return nil, nil, err
	}
	ids = []target.ID{open[0].TargetID}
	for range len(doc.Tabs) - 1 {
		made, err := cdp.Call(ctx, h.env.Driver, target.CreateTarget, target.CreateTargetParams{URL: blankURL})
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, made.TargetID)
	}
	r := tabReport{saved: doc.Tabs, byScript: true, lost: report.NotOpened.With("the tab could not be opened"),
		short: report.ListNotRestored.With("the shell engine opens tabs by URL, without their back/forward lists")}
	opened := make([]*heldTab, len(doc.Tabs))
	for i, tab := range doc.Tabs {
		t, err := h.attachBlank(ctx, ids[i])
		opened[i] = t
		back := err == nil && h.env.Browser.AllowedURL(tab.URL)
		if back {
			back = h.load(ctx, t, tab) == nil
		}
		r.add(i, back, 0)
	}
	h.env.Baseline.NoteTabs(idsOf(opened))
	h.awaitDocuments(ctx)
	return r.lines(), ids[:len(doc.Tabs)], nil
}

// attachBlank attaches to a blank tab once the session's setup of it is done.
func (h *Tabs) attachBlank(ctx context.Context, id target.ID) (*heldTab, error) {
	ready := make(chan struct{})
	h.env.Targets.WhenReady(id, func(*targetinit.Target) { close(ready) })
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	yes := true
	at, err := cdp.Call(ctx, h.env.Driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		return nil, err
	}
	t := &heldTab{session: at.SessionID, info: &target.Info{TargetID: id, Type: "page", URL: blankURL}}
	h.tabs = append(h.tabs, t)
	return t, nil
}

// unopenedLines returns the report lines of a document's tabs if none are wanted.
func unopenedLines(doc state.Document) []state.Component {
	r := tabReport{saved: doc.Tabs, lost: report.TabsUnwanted.Reason()}
	for i := range doc.Tabs {
		r.add(i, false, 0)
	}
	return r.lines()
}
