package browser

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// settleDeadline bounds how long a tab's init script stays in place for a
// first document that does not come (a site that does not answer).
const settleDeadline = 30 * time.Second

// releaseDeadline bounds how long a hold may take to be given up.
const releaseDeadline = 5 * time.Second

// settle stays attached until each tab that has an init script has its first
// document, and each frame that has storage of its own: there the script runs
// once and never again. Then it lets go. A tab that a page opens meanwhile is
// not kept waiting, and a tab that has no document by then is armed on (see applyLater).
func (h *hold) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleDeadline)
	defer cancel()
	defer h.release(ctx)
	defer func() {
		h.hearRest()
		h.b.baseline.NoteScripted(h.scripted())
		h.applyLater(ctx)
	}()
	for h.layingDown() {
		select {
		case e, ok := <-h.events:
			if !ok {
				return
			}
			h.hear(ctx, e)
		case <-ctx.Done():
			return
		}
	}
}

func (h *hold) layingDown() bool {
	for _, t := range h.tabs {
		if !t.laying.over() && !t.laying.failed {
			return true
		}
	}
	return false
}

// release gives the hold up: what still waits runs.
func (h *hold) release(ctx context.Context) {
	defer h.stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseDeadline)
	defer cancel()
	if !h.direct {
		h.drain(ctx)
	}
	h.starting.Wait()
	if h.b.passkeys != nil {
		h.leave(ctx)
		return
	}
	if !h.direct {
		yes := true // without it Chrome refuses the command
		// Detaching resumes pages that wait; of a dead Chrome nothing does.
		_, _ = cdp.Call(ctx, h.b.driver, target.SetAutoAttach, target.SetAutoAttachParams{Flatten: &yes})
	}
	// Chrome forgets that it attached to a target by itself once another
	// session of that target is detached; its frames would wait for ever.
	for _, t := range h.tabs {
		_, _ = cdp.Call(ctx, h.b.driver, target.DetachFromTarget, target.DetachFromTargetParams{SessionID: t.session})
	}
}

// leave gives the hold up and stays attached: with a session of a page that has
// navigated Chrome would end the page's authenticator, while its first scripts
// run. Nothing is attached to from now on, and nothing waits.
func (h *hold) leave(ctx context.Context) {
	yes := true
	if !h.direct {
		_, _ = cdp.Call(ctx, h.b.driver, target.SetAutoAttach, target.SetAutoAttachParams{
			AutoAttach: true, Flatten: &yes, Filter: target.Filter{{Type: "none"}}})
	}
	for _, t := range h.tabs {
		h.post(t.session, target.SetAutoAttach.Method, target.SetAutoAttachParams{Flatten: &yes})
		h.post(t.session, page.Disable.Method, nil) // its scripts go with it
	}
}

// drain lets go what attached until now and was not looked at yet: a worker
// that is detached before it runs never does. Events come in order, so an
// attachment of its own marks their end.
func (h *hold) drain(ctx context.Context) {
	h.runWorkers()
	h.draining = true
	yes := true
	if _, err := cdp.Call(ctx, h.b.driver, target.SetAutoAttach,
		target.SetAutoAttachParams{AutoAttach: true, Flatten: &yes, Filter: heldTypes}); err != nil {
		return // of a dead Chrome nothing waits
	}
	h.untilNow(ctx, func(e mux.Event) {
		if h.take(e) {
			h.run(h.tabs[len(h.tabs)-1])
		}
	})
	for _, s := range h.workers {
		_, _ = cdp.Call(ctx, h.b.driver.Session(s), runtime.RunIfWaitingForDebugger, cdp.Empty{})
	}
}

// untilNow gives take the events that Chrome has sent until now.
func (h *hold) untilNow(ctx context.Context, take func(mux.Event)) {
	mark, err := h.mark(ctx)
	if err != nil {
		return // a dead Chrome sends none
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

// mark has an event come after those that Chrome has sent until now: the
// attachment of the session that it returns.
func (h *hold) mark(ctx context.Context) (target.SessionID, error) {
	made, err := cdp.Call(ctx, h.b.driver, target.AttachToBrowserTarget, cdp.Empty{})
	if err != nil {
		return "", err
	}
	_, err = cdp.Call(ctx, h.b.driver, target.DetachFromTarget, target.DetachFromTargetParams(made))
	return made.SessionID, err
}
