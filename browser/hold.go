package browser

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// settleDeadline bounds how long a tab's init script stays in place for a
// first document that does not come (a site that does not answer).
const settleDeadline = 30 * time.Second

// hold keeps the tabs of a profile that is being brought in from running until
// they are let go. It belongs to one goroutine at a time: the restore's, then
// settle's.
type hold struct {
	b      *Browser
	events <-chan mux.Event
	stop   func()
	tabs   []*heldTab
}

// heldTab is one page target that waits.
type heldTab struct {
	session target.SessionID
	info    *target.Info
	// committing is set while an init script waits for the tab's first document.
	committing bool
}

// hold attaches the driver to every target that comes up from now on.
func (b *Browser) hold(ctx context.Context) (*hold, error) {
	h := &hold{b: b}
	h.events, h.stop = b.driver.Events(target.AttachedToTarget.Method, page.FrameNavigated.Method)
	yes := true
	_, err := cdp.Call(ctx, b.driver, target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes,
		Filter: target.Filter{{Type: "page"}, {Type: "service_worker"}}})
	if err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

// await waits until the expected number of tabs is held. Once one is there
// the others follow within milliseconds, so tabs that Chrome does not bring
// back are not waited for long.
func (h *hold) await(ctx context.Context, expected int) error {
	ctx, cancel := context.WithTimeout(ctx, bringInDeadline)
	defer cancel()
	var straggle <-chan time.Time
	for len(h.tabs) < expected {
		select {
		case e, ok := <-h.events:
			if !ok {
				return errors.New("the connection to Chrome ended")
			}
			h.navigated(e)
			if h.take(e) && straggle == nil {
				timer := time.NewTimer(2 * time.Second)
				defer timer.Stop()
				straggle = timer.C
			}
		case <-straggle:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// take notes a target that attached; it reports whether it is a held tab.
// Pages that ran before (the spare's) and workers are not: a worker is let go
// at once, for its page waits and the jar is the profile's own.
func (h *hold) take(e mux.Event) bool {
	if e.Method != target.AttachedToTarget.Method {
		return false
	}
	var at target.EventAttachedToTarget
	if json.Unmarshal(e.Params, &at) != nil || !at.WaitingForDebugger {
		return false
	}
	if at.TargetInfo.Type != "page" {
		h.post(at.SessionID, runtime.RunIfWaitingForDebugger.Method, nil)
		return false
	}
	h.tabs = append(h.tabs, &heldTab{session: at.SessionID, info: at.TargetInfo})
	return true
}

// post sends without awaiting the answer: a target that waits answers most
// commands only when it runs, but takes them in order.
func (h *hold) post(s target.SessionID, method string, params any) {
	// A lost pipe shows at the next call that is awaited.
	_ = h.b.driver.Post(h.b.ctx, s, method, params)
}

// run lets a tab go, with what the session sets on each.
func (h *hold) run(t *heldTab) {
	h.b.attendance.invite(h.b.ctx, t.info.TargetID)
	h.post(t.session, runtime.RunIfWaitingForDebugger.Method, nil)
}

// arm posts the script that lays a tab's own state down to a tab whose
// navigation is held: it is in place when the tab's document is made.
func (h *hold) arm(t *heldTab, script string) {
	if script == "" {
		return
	}
	t.committing = true
	h.post(t.session, page.Enable.Method, nil)
	h.post(t.session, page.AddScriptToEvaluateOnNewDocument.Method, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// release gives the hold up: what still waits runs.
func (h *hold) release(ctx context.Context) {
	h.stop()
	yes := true // without it Chrome refuses the command
	// Detaching resumes what waits; of a dead Chrome nothing does.
	_, _ = cdp.Call(context.WithoutCancel(ctx), h.b.driver, target.SetAutoAttach, target.SetAutoAttachParams{Flatten: &yes})
}

// settle stays attached until each tab that has an init script has its first
// document, so that the script runs once and never again, then lets go. A tab
// that a page opens meanwhile is not kept waiting.
func (h *hold) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleDeadline)
	defer cancel()
	defer h.release(ctx)
	for h.committing() {
		select {
		case e, ok := <-h.events:
			if !ok {
				return
			}
			if h.take(e) {
				h.run(h.tabs[len(h.tabs)-1])
			}
			h.navigated(e)
		case <-ctx.Done():
			return
		}
	}
}

func (h *hold) committing() bool {
	for _, t := range h.tabs {
		if t.committing {
			return true
		}
	}
	return false
}

// navigated notes a main frame's first real document.
func (h *hold) navigated(e mux.Event) {
	if e.Method != page.FrameNavigated.Method {
		return
	}
	var nav page.EventFrameNavigated
	if json.Unmarshal(e.Params, &nav) != nil || nav.Frame == nil || nav.Frame.ParentID != "" || nav.Frame.URL == "about:blank" {
		return
	}
	for _, t := range h.tabs {
		if t.session == e.SessionID {
			t.committing = false
		}
	}
}

// match finds for each saved tab the held one that shows its URL, nil where
// none does. Targets have new IDs after a restore, so the URL decides, and
// order among equals.
func (h *hold) match(tabs []state.Tab) []*heldTab {
	matched := make([]*heldTab, len(tabs))
	used := map[*heldTab]bool{}
	for i, tab := range tabs {
		for _, t := range h.tabs {
			if !used[t] && t.info.URL == tab.URL {
				matched[i], used[t] = t, true
				break
			}
		}
	}
	return matched
}

// resume lets the tabs go that Chrome brought back from the profile's session
// files. Chrome loads tabs in the back lazily, seconds later; each is brought
// to the front once, so that it loads now, and the active one last.
func (h *hold) resume(ctx context.Context, doc state.Document) []state.Component {
	scripts := map[*heldTab]string{}
	var front *heldTab
	r := tabReport{saved: doc.Tabs, lost: "Chrome did not bring the tab back from its session files"}
	for i, t := range h.match(doc.Tabs) {
		r.add(i, t != nil)
		if t == nil {
			continue
		}
		scripts[t] = capture.Script(doc.Tabs[i], false)
		if doc.Tabs[i].Active {
			front = t
		}
	}
	for _, t := range h.tabs {
		if !mux.AllowedURL(t.info.URL) {
			h.post("", target.CloseTarget.Method, target.CloseTargetParams{TargetID: t.info.TargetID})
			continue
		}
		if front != nil && t != front {
			// Before the script: until it is in front a lazy tab has no
			// navigation that is held, and the script would come too late.
			h.activate(ctx, t)
		}
		h.arm(t, scripts[t])
		h.run(t)
	}
	if front != nil && len(h.tabs) > 1 {
		h.activate(ctx, front)
	}
	return r.lines()
}

// activate brings a tab to the front. One that refuses is still there, in the
// back.
func (h *hold) activate(ctx context.Context, t *heldTab) {
	_, _ = cdp.Call(ctx, h.b.driver, target.ActivateTarget, target.ActivateTargetParams{TargetID: t.info.TargetID})
}
