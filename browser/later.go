package browser

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/domstorage"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
)

// applyLater keeps the scripts of tabs whose page has not come in place until it
// comes, for as long as Chrome runs: a client may reload the page hours later. It
// attaches to them anew, for h detaches.
func (h *hold) applyLater(ctx context.Context) {
	later := &hold{b: h.b, direct: true}
	later.events, later.stop = h.b.driver.Events(heldEvents...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseDeadline)
	defer cancel()
	for _, t := range h.tabs {
		if t.laying != nil && !t.laying.committed {
			later.adopt(ctx, t)
		}
	}
	if len(later.tabs) == 0 {
		later.stop()
		return
	}
	h.b.hearing.Go(func() { later.untilApplied(h.b.ctx) })
}

// adopt attaches to a tab of another hold, with what is left of its script.
func (h *hold) adopt(ctx context.Context, of *heldTab) {
	yes := true
	at, err := cdp.Call(ctx, h.b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: of.info.TargetID, Flatten: &yes})
	if err != nil {
		return // it has been closed
	}
	t := &heldTab{session: at.SessionID, info: of.info}
	script := t.lay(of.laying.left)
	url, _ := json.Marshal(of.laying.left.URL) // a string always encodes
	h.tabs = append(h.tabs, t)
	h.post(t.session, domstorage.Enable.Method, nil)
	h.post(t.session, page.Enable.Method, nil)
	// Until the page comes, a client may send the tab to another site, which must not
	// get the name.
	_, _ = cdp.Call(ctx, h.b.driver.Session(t.session), page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: fmt.Sprintf("if (window !== window.top || location.origin === new URL(%s).origin) %s", url, script)})
	h.watch(t.session)
}

// untilApplied hears the events of its tabs until the last of them has what it waits for.
func (h *hold) untilApplied(ctx context.Context) {
	defer h.release(ctx)
	for {
		select {
		case e, ok := <-h.events:
			if !ok {
				return
			}
			if h.tabOf(e.SessionID) != nil {
				h.hear(ctx, e)
			}
		case <-ctx.Done():
			return
		}
		if !h.applying() {
			return
		}
	}
}

// applying reports whether a tab still waits for its page, or for a frame of it.
func (h *hold) applying() bool {
	for _, t := range h.tabs {
		if !t.laying.over() {
			return true
		}
	}
	return false
}
