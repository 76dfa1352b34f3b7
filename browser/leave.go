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

// leaveDeadline bounds how long leave takes to attach to the pages, and then how long these may
// take to close. Chrome gives each about a second, all in parallel. But it waits without end for
// one that hangs and handles beforeunload (Chromium 156), so that every second more delays a close.
const leaveDeadline = 3 * time.Second

// flushTabDeadline bounds how long flushTab waits for a tab's answers, which take milliseconds.
// A busy page takes longer, and one that hangs or has a dialog does not answer. activateDeadline
// bounds how long it then waits for the browser process.
const (
	flushTabDeadline = 1500 * time.Millisecond
	activateDeadline = 500 * time.Millisecond
)

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
	events, stop := c.driver.Events(page.JavascriptDialogOpening.Method, target.DetachedFromTarget.Method)
	defer stop()
	left, err := c.attach(ctx)
	if err != nil {
		return
	}
	if !c.shell { // its tabs are restored without this state
		c.flushTabs(ctx, left)
	}
	ctx, cancel := context.WithTimeout(ctx, leaveDeadline)
	defer cancel()
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

// attach attaches to all pages and enables the reports of their dialogs.
func (c closing) attach(ctx context.Context) (map[target.SessionID]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, leaveDeadline)
	defer cancel()
	pages, err := capture.Pages(ctx, c.driver)
	if err != nil {
		return nil, err
	}
	attached := map[target.SessionID]bool{}
	for _, p := range pages {
		yes := true
		at, err := cdp.Call(ctx, c.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: p.TargetID, Flatten: &yes})
		if err != nil {
			continue // it has already closed
		}
		attached[at.SessionID] = true
		_ = c.driver.Post(ctx, at.SessionID, page.Enable.Method, nil) // a lost pipe shows in leave
	}
	return attached, nil
}

// flushTabs is flushTab for all attached tabs.
func (c closing) flushTabs(ctx context.Context, attached map[target.SessionID]bool) {
	var flushed sync.WaitGroup
	for at := range attached {
		flushed.Go(func() { flushTab(ctx, c.driver.Session(at)) })
	}
	flushed.Wait()
}

// flushTab makes a tab report its scroll position and form input to Chrome. Otherwise
// the tab does so 1 s after a change, or 5 s in the background. A tab that is frozen does
// so at once (measured). The page only notices its Page Lifecycle events. flushTab then
// activates the tab again, whether it has answered or not: a frozen page runs no pagehide
// handlers.
func flushTab(ctx context.Context, tab cdp.Session) {
	flushing, cancel := context.WithTimeout(ctx, flushTabDeadline)
	defer cancel()
	set := func(ctx context.Context, to page.SetWebLifecycleStateState) {
		// The browser process answers the first command, the page answers the second.
		_, err := cdp.Call(ctx, tab, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: to})
		if err == nil && flushing.Err() == nil {
			_, _ = cdp.Call(flushing, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: "0"})
		}
	}
	set(flushing, page.SetWebLifecycleStateStateFrozen)
	activating, cancel := context.WithTimeout(ctx, flushTabDeadline+activateDeadline)
	defer cancel()
	set(activating, page.SetWebLifecycleStateStateActive)
}

// acceptUnload accepts a beforeunload dialog, so that the page can be left.
func (c closing) acceptUnload(ctx context.Context, e mux.Event) {
	var opening page.EventJavascriptDialogOpening
	if json.Unmarshal(e.Params, &opening) == nil && opening.Type == page.DialogTypeBeforeunload {
		_ = c.driver.Post(ctx, e.SessionID, page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: true})
	}
}
