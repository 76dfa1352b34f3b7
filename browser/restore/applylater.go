package restore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// applyLater keeps the scripts in place for tabs whose page has not loaded yet, until the
// page loads or Chrome ends: a client may reload the page hours later. It attaches to
// these tabs again, because h detaches.
func (h *Tabs) applyLater(ctx context.Context) {
	later := &Tabs{env: h.env, direct: true}
	later.events, later.stop = h.env.Driver.Events(heldEvents...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseDeadline)
	defer cancel()
	for _, t := range h.tabs {
		if t.script != nil && !t.script.committed {
			later.adopt(ctx, t)
		}
	}
	if len(later.tabs) == 0 {
		later.stop()
		return
	}
	h.env.Browser.Go(func() { later.untilApplied(h.env.Life) })
}

// adopt attaches to a tab of another Tabs, with what its script still has to apply.
func (h *Tabs) adopt(ctx context.Context, of *heldTab) {
	yes := true
	at, err := cdp.Call(ctx, h.env.Driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: of.info.TargetID, Flatten: &yes})
	if err != nil {
		return // it has been closed
	}
	t := &heldTab{session: at.SessionID, info: of.info}
	script := t.prepare(of.script.remaining)
	url, _ := json.Marshal(of.script.remaining.URL) // encoding a string cannot fail
	h.tabs = append(h.tabs, t)
	// Before the page loads, a client may navigate the tab to another site, which must
	// not get the name. So the script checks the origin.
	_ = t.script.set(ctx, h.env, t.session, fmt.Sprintf("if (window !== window.top || location.origin === new URL(%s).origin) %s", url, script))
	h.watchFrames(t.session)
}

// untilApplied handles the events of its tabs until their scripts have applied
// everything.
func (h *Tabs) untilApplied(ctx context.Context) {
	defer h.end(ctx)
	for {
		select {
		case e, ok := <-h.events:
			if !ok {
				return
			}
			if h.tabOf(e.SessionID) != nil {
				h.handle(e)
			}
		case <-ctx.Done():
			return
		}
		if !applying(h.tabs) {
			return
		}
	}
}

// applying reports whether a tab still waits for its page, or for one of its frames.
func applying(tabs []*heldTab) bool {
	for _, t := range tabs {
		if !t.script.done() {
			return true
		}
	}
	return false
}
