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

// leaveDeadline bounds how long pages may take to leave. Chrome gives each
// about a second, all at once.
const leaveDeadline = 3 * time.Second

// settleTabDeadline bounds what a tab may take to settle: it answers within
// milliseconds or hangs.
const settleTabDeadline = 500 * time.Millisecond

// closing lets the pages of one Chrome leave, and what they wrote reach the disk, before
// Chrome is closed.
type closing struct {
	driver  *mux.Driver
	mux     *mux.Mux
	process *launch.Process
	dir     *Dir
	shell   bool
}

// leave asks Chrome to quit as a person does (SIGINT), which Browser.close does
// not: the pages' own pagehide and unload handlers run, and what they write,
// or send and have answered at once, is kept. A page that asks whether it may
// be left (beforeunload) is told yes. Chrome has usually ended when it returns;
// one that has not is asked over CDP next. The shell would end at once: its pages
// are closed one by one instead, with the same handlers.
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
			continue // it has left by itself
		}
		left[at.SessionID] = true
		_ = c.driver.Post(ctx, at.SessionID, page.Enable.Method, nil) // a lost pipe shows below
		if !c.shell {                                                 // whose tabs come back without them
			settled.Go(func() { settleTab(ctx, c.driver.Session(at.SessionID)) })
		}
	}
	settled.Wait()
	c.mux.LetPagesGo()
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
				c.permit(ctx, e)
			}
		case <-c.process.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// settleTab makes a tab tell Chrome its scroll position and what is typed in its
// forms, which it otherwise does 1 s after they change, or 5 s in the back: a
// tab that is frozen tells at once (measured; its Page Lifecycle events are all
// that the page can notice). It runs again, for its pagehide handlers. A tab
// that does not answer leaves as it is.
func settleTab(ctx context.Context, tab cdp.Session) {
	ctx, cancel := context.WithTimeout(ctx, settleTabDeadline)
	defer cancel()
	for _, to := range []page.SetWebLifecycleStateState{page.SetWebLifecycleStateStateFrozen, page.SetWebLifecycleStateStateActive} {
		if _, err := cdp.Call(ctx, tab, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: to}); err != nil {
			return
		}
		// Chrome answers that by itself, this only when the page has come to it.
		if _, err := cdp.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: "0"}); err != nil {
			return
		}
	}
}

// permit lets a page be left.
func (c closing) permit(ctx context.Context, e mux.Event) {
	var opening page.EventJavascriptDialogOpening
	if json.Unmarshal(e.Params, &opening) == nil && opening.Type == page.DialogTypeBeforeunload {
		_ = c.driver.Post(ctx, e.SessionID, page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: true})
	}
}
