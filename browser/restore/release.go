package restore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// Release lets the tabs run, so that they load. It returns report lines for the
// document's tabs.
func (h *Tabs) Release(ctx context.Context, doc state.Document, from Source) ([]state.Component, error) {
	switch from {
	case SourceProfile:
		return h.releaseSessionTabs(ctx, doc, h.env.Baseline.Broken.SessionStorage), nil
	case SourceUnread:
		return h.restoreUnread(ctx, doc)
	case SourceDocument:
		return h.restoreStale(ctx, doc)
	case SourceNone:
		return h.keepBlank(ctx, doc)
	}
	return nil, nil
}

// TabsWithForeignHistory lists the held tabs whose back/forward lists contain an address
// that a session may not show: a page could go back to it.
func (h *Tabs) TabsWithForeignHistory(ctx context.Context) []target.ID {
	var ids []target.ID
	for _, t := range h.tabs {
		history, err := h.historyOf(ctx, t)
		if err == nil && slices.ContainsFunc(history.Entries, func(e *page.NavigationEntry) bool { return h.env.Browser.ForeignURL(e.URL) }) {
			ids = append(ids, t.info.TargetID)
		}
	}
	return ids
}

// SettleDeadline bounds how long a tab's init script stays in place while its first
// document does not come, because the site does not answer.
const SettleDeadline = 30 * time.Second

// releaseDeadline bounds the release of the tabs.
const releaseDeadline = 5 * time.Second

// Settle stays attached until each tab with an init script has its first document. It
// also waits for the frames whose sessionStorage is to be applied. There the script runs
// exactly once. Then Settle detaches. It does not hold tabs that a page opens meanwhile.
// For a tab that has no document by then, see applyLater.
func (h *Tabs) Settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, SettleDeadline)
	defer cancel()
	defer h.end(ctx)
	defer func() {
		h.handleRemaining()
		h.env.Baseline.NoteScripted(h.scriptedTabs())
		h.applyLater(ctx)
	}()
	for h.unsettled() {
		select {
		case e, ok := <-h.events:
			if !ok {
				return
			}
			h.handle(e)
		case <-ctx.Done():
			return
		}
	}
}

func (h *Tabs) unsettled() bool {
	for _, t := range h.tabs {
		if !t.script.done() && !t.script.failed {
			return true
		}
	}
	return false
}

// end detaches from the tabs. Targets that still wait run.
func (h *Tabs) end(ctx context.Context) {
	defer h.stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseDeadline)
	defer cancel()
	if !h.direct {
		h.drain(ctx)
	}
	h.starting.Wait()
	if h.env.Browser.StayAttached() {
		h.stayAttached(ctx)
		return
	}
	if !h.direct {
		yes := true // without it Chrome refuses the command
		// Detaching resumes waiting pages. A dead Chrome has none.
		_, _ = cdp.Call(ctx, h.env.Driver, target.SetAutoAttach, target.SetAutoAttachParams{Flatten: &yes})
	}
	// Once another session of a target is detached, Chrome forgets that it auto-attached
	// to the target. Its frames would then wait for ever.
	for _, t := range h.tabs {
		_, _ = cdp.Call(ctx, h.env.Driver, target.DetachFromTarget, target.DetachFromTargetParams{SessionID: t.session})
	}
}

// stayAttached releases the tabs and stays attached. If a session of a page that has
// navigated were detached, Chrome would remove the page's authenticator while its first
// scripts run. From here on Chrome attaches to no new target, and nothing waits.
func (h *Tabs) stayAttached(ctx context.Context) {
	yes := true
	if !h.direct {
		_, _ = cdp.Call(ctx, h.env.Driver, target.SetAutoAttach, target.SetAutoAttachParams{
			AutoAttach: true, Flatten: &yes, Filter: target.Filter{{Type: "none"}}})
	}
	for _, t := range h.tabs {
		h.post(t.session, target.SetAutoAttach.Method, target.SetAutoAttachParams{Flatten: &yes})
		h.post(t.session, page.Disable.Method, nil) // removes its scripts too
	}
}

// drain runs the targets that have attached and were not handled yet: a worker that is
// detached before it runs never runs. Events come in order, so a marker (see mark) shows
// where they end.
func (h *Tabs) drain(ctx context.Context) {
	h.RunWorkers()
	h.draining = true
	yes := true
	if _, err := cdp.Call(ctx, h.env.Driver, target.SetAutoAttach,
		target.SetAutoAttachParams{AutoAttach: true, Flatten: &yes, Filter: heldTypes}); err != nil {
		return // in a dead Chrome nothing waits
	}
	h.untilNow(ctx, func(e mux.Event) {
		if h.attached(e) {
			h.run(h.tabs[len(h.tabs)-1])
		}
	})
	for _, s := range h.workers {
		_, _ = cdp.Call(ctx, h.env.Driver.Session(s), runtime.RunIfWaitingForDebugger, cdp.Empty{})
	}
}

// untilNow calls take with the events that Chrome has sent up to now.
func (h *Tabs) untilNow(ctx context.Context, take func(mux.Event)) {
	mark, err := h.mark(ctx)
	if err != nil {
		return // a dead Chrome sends no events
	}
	for {
		select {
		case e, ok := <-h.events:
			var at target.EventAttachedToTarget
			if !ok || e.Method == target.AttachedToTarget.Method && json.Unmarshal(e.Params, &at) == nil && at.SessionID == mark {
				return
			}
			take(e)
		case <-ctx.Done():
			return
		}
	}
}

// mark makes Chrome send an event after all that it has sent up to now: the attachment of
// the session whose ID mark returns.
func (h *Tabs) mark(ctx context.Context) (target.SessionID, error) {
	made, err := cdp.Call(ctx, h.env.Driver, target.AttachToBrowserTarget, cdp.Empty{})
	if err != nil {
		return "", err
	}
	_, err = cdp.Call(ctx, h.env.Driver, target.DetachFromTarget, target.DetachFromTargetParams(made))
	return made.SessionID, err
}
