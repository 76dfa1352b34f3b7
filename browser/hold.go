package browser

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/domstorage"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// heldEvents are the events that a hold hears.
var heldEvents = []string{target.AttachedToTarget.Method, page.FrameNavigated.Method,
	domstorage.DomStorageItemAdded.Method, domstorage.DomStorageItemUpdated.Method}

// heldTypes are the targets that are held.
var heldTypes = target.Filter{{Type: "page"}, {Type: "service_worker"}}

// hold keeps the tabs of a profile that is being brought in from running until
// they are let go. It belongs to one goroutine at a time: the restore's, then
// settle's.
type hold struct {
	b      *Browser
	events <-chan mux.Event
	stop   func()
	tabs   []*heldTab
	// workers are the extensions' that wait for their storage to be laid down;
	// once it is, laid says so and later ones do not wait. While the hold is
	// given up they are all that still wait.
	workers        []target.SessionID
	starting       sync.WaitGroup // workers that were let go and have not answered
	laid, draining bool
	// direct: it attaches to each tab by itself, and nothing waits for it.
	direct bool
}

// heldTab is one page target that waits.
type heldTab struct {
	session  target.SessionID
	info     *target.Info
	history  *page.GetNavigationHistoryResult // as Chrome brought it back; nil where nobody asked
	departed bool                             // it is on its way to its address
	laying   *laying                          // nil where nothing is laid down in it
}

// hold attaches the driver to every target that comes up from now on.
func (b *Browser) hold(ctx context.Context) (*hold, error) {
	h := &hold{b: b}
	h.events, h.stop = b.driver.Events(heldEvents...)
	yes := true
	_, err := cdp.Call(ctx, b.driver, target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes,
		Filter: heldTypes})
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
			h.navigated(ctx, e)
			h.stored(e)
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
// at once, for its page waits and the jar is the profile's own; an extension's
// needs no page, and waits for what Chrome kept of it in memory.
func (h *hold) take(e mux.Event) bool {
	if e.Method != target.AttachedToTarget.Method {
		return false
	}
	var at target.EventAttachedToTarget
	if json.Unmarshal(e.Params, &at) != nil || !at.WaitingForDebugger {
		return false
	}
	switch at.TargetInfo.Type {
	case "page":
	case "iframe":
		h.frame(e.SessionID, at.SessionID)
		return false
	default:
		if h.draining || !h.laid && strings.HasPrefix(at.TargetInfo.URL, "chrome-extension:") {
			h.workers = append(h.workers, at.SessionID)
			return false
		}
		h.runWorker(at.SessionID)
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

// runWorkers lets the extensions' workers go, those that come later too.
func (h *hold) runWorkers() {
	for _, s := range h.workers {
		h.runWorker(s)
	}
	h.workers, h.laid = nil, true
}

// runWorker lets a worker go. One that is detached before it has answered never runs,
// so release waits for the answers.
func (h *hold) runWorker(s target.SessionID) {
	h.starting.Go(func() {
		ctx, cancel := context.WithTimeout(h.b.ctx, releaseDeadline)
		defer cancel()
		_, _ = cdp.Call(ctx, h.b.driver.Session(s), runtime.RunIfWaitingForDebugger, cdp.Empty{}) // one that ended meanwhile waits for nothing
	})
}

// run lets a tab go, with what the session sets on each.
func (h *hold) run(t *heldTab) {
	h.b.targets.InitialiseHeld(h.b.ctx, t.info.TargetID)
	h.post(t.session, runtime.RunIfWaitingForDebugger.Method, nil)
}

// runBlank lets a blank tab go and returns once it has what the session sets on
// each, so that it may navigate.
func (h *hold) runBlank(ctx context.Context, t *heldTab) error {
	h.run(t)
	return h.b.targets.Applied(ctx, t.info.TargetID)
}

// match finds for each saved tab the held one that shows its URL and has its
// back/forward list, where that was asked for; nil where none does. Targets
// have new IDs after a restore, so this decides, and order among equals.
func (h *hold) match(tabs []state.Tab) []*heldTab {
	matched := make([]*heldTab, len(tabs))
	used := map[*heldTab]bool{}
	for i, tab := range tabs {
		for _, t := range h.tabs {
			if !used[t] && t.info.URL == tab.URL && t.agrees(tab) {
				matched[i], used[t] = t, true
				break
			}
		}
	}
	return matched
}

// activate brings a tab to the front. One that refuses is still there, in the
// back.
func (h *hold) activate(ctx context.Context, t *heldTab) {
	_, _ = cdp.Call(ctx, h.b.driver, target.ActivateTarget, target.ActivateTargetParams{TargetID: t.info.TargetID})
}
