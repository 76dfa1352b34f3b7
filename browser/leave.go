package browser

import (
	"context"
	"encoding/json"
	"sync"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/mux"
)

// leaveDeadline bounds how long the pages may take to close. Chrome gives each about a
// second, all in parallel.
const leaveDeadline = 3 * time.Second

// flushTabDeadline bounds flushTab. A tab answers within milliseconds or hangs.
const flushTabDeadline = 500 * time.Millisecond

// closing closes the pages of one Chrome and gets their data to disk, before Chrome
// itself is closed.
type closing struct {
	driver  *mux.Driver
	mux     *mux.Mux
	process *launch.Process
	dir     *Dir
	shell   bool
}

// leave makes Chrome quit as a user would (SIGINT). Unlike Browser.close, this runs the
// pages' pagehide and unload handlers. What they write, or send and get answered at once,
// is kept. leave accepts dialogs of pages that ask for confirmation (beforeunload).
// Chrome has usually exited when it returns; if not, Close continues with Browser.close.
// The shell would exit at once on SIGINT, so leave closes its pages one by one, which
// runs the same handlers.
func (c closing) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveDeadline)
	defer cancel()
	events, stop := c.driver.Events(page.JavascriptDialogOpening.Method, target.DetachedFromTarget.Method)
	defer stop()
	pages, err := capture.Pages(ctx, c.driver)
	if err != nil {
		return
	}
	var settled sync.WaitGroup
	left := map[target.SessionID]bool{}
	for _, p := range pages {
		yes := true
		at, err := cdp.Call(ctx, c.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: p.TargetID, Flatten: &yes})
		if err != nil {
			continue // it has already closed
		}
		left[at.SessionID] = true
		_ = c.driver.Post(ctx, at.SessionID, page.Enable.Method, nil) // a lost pipe shows below
		if !c.shell {                                                 // its tabs are restored without this state
			settled.Go(func() { flushTab(ctx, c.driver.Session(at.SessionID)) })
		}
	}
	settled.Wait()
	c.mux.AllowLastClose()
	if c.shell {
		for at := range left {
			_ = c.driver.Post(ctx, at, page.Close.Method, nil)
		}
	} else if c.process.Signal(syscall.SIGINT) != nil {
		return
	}
	for len(left) > 0 || !c.shell {
		select {
		case e, ok := <-events:
			switch {
			case !ok:
				_ = c.process.Wait(ctx)
				return
			case e.Method == target.DetachedFromTarget.Method:
				var gone target.EventDetachedFromTarget
				if json.Unmarshal(e.Params, &gone) == nil {
					delete(left, gone.SessionID)
				}
			default:
				c.acceptUnload(ctx, e)
			}
		case <-c.process.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// flushTab makes a tab report its scroll position and form input to Chrome. Otherwise
// the tab does so 1 s after a change, or 5 s in the background. A tab that is frozen does
// so at once (measured). The page only notices its Page Lifecycle events. flushTab then
// activates the tab again, for its pagehide handlers. It leaves a tab that does not
// answer unchanged.
func flushTab(ctx context.Context, tab cdp.Session) {
	ctx, cancel := context.WithTimeout(ctx, flushTabDeadline)
	defer cancel()
	for _, to := range []page.SetWebLifecycleStateState{page.SetWebLifecycleStateStateFrozen, page.SetWebLifecycleStateStateActive} {
		if _, err := cdp.Call(ctx, tab, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: to}); err != nil {
			return
		}
		// The browser process answers the first command, the page answers the second.
		if _, err := cdp.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: "0"}); err != nil {
			return
		}
	}
}

// acceptUnload accepts a beforeunload dialog, so that the page can be left.
func (c closing) acceptUnload(ctx context.Context, e mux.Event) {
	var opening page.EventJavascriptDialogOpening
	if json.Unmarshal(e.Params, &opening) == nil && opening.Type == page.DialogTypeBeforeunload {
		_ = c.driver.Post(ctx, e.SessionID, page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: true})
	}
}
