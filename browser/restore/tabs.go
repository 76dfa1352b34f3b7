package restore

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

// heldEvents are the events that Tabs handles.
var heldEvents = []string{target.AttachedToTarget.Method, page.FrameNavigated.Method,
	domstorage.DomStorageItemAdded.Method, domstorage.DomStorageItemUpdated.Method}

// heldTypes are the targets that are held.
var heldTypes = target.Filter{{Type: "page"}, {Type: "service_worker"}}

// tabDeadline bounds the wait for a profile's first tab, which takes Chrome
// 70–250 ms.
const tabDeadline = 20 * time.Second

// Tabs are the tabs of a profile that is being restored. They do not run until they
// are released. Tabs belongs to one goroutine at a time: the restore's, then that of
// Settle.
type Tabs struct {
	env    Environment
	events <-chan mux.Event
	stop   func()
	tabs   []*heldTab
	// workers are the extensions' that wait for their storage to be applied. Once it
	// is, workersRun says so and later ones do not wait. While draining they are all
	// that still wait.
	workers              []target.SessionID
	starting             sync.WaitGroup // workers that were released and have not answered
	workersRun, draining bool
	// direct: it attaches to each tab by itself, and nothing waits for it.
	direct bool
}

// heldTab is one page target that waits.
type heldTab struct {
	session target.SessionID
	info    *target.Info
	history *page.GetNavigationHistoryResult // as Chrome brought it back; nil where nobody asked
	loading bool                             // it is on its way to its address
	script  *tabScript                       // nil where nothing is applied in it
}

// Hold attaches to every target that comes up from now on, and keeps it from running.
func (e Environment) Hold(ctx context.Context) (*Tabs, error) {
	h := &Tabs{env: e}
	h.events, h.stop = e.Driver.Events(heldEvents...)
	yes := true
	_, err := cdp.Call(ctx, e.Driver, target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes,
		Filter: heldTypes})
	if err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

// Stop handles no more events: the tabs go with their Chrome.
func (h *Tabs) Stop() { h.stop() }

// Await waits until the expected number of tabs is held. Once one is there
// the others follow within milliseconds, so tabs that Chrome does not bring
// back are not waited for long.
func (h *Tabs) Await(ctx context.Context, expected int) error {
	ctx, cancel := context.WithTimeout(ctx, tabDeadline)
	defer cancel()
	var straggle <-chan time.Time
	for len(h.tabs) < expected {
		select {
		case e, ok := <-h.events:
			if !ok {
				return errors.New("the connection to Chrome ended")
			}
			h.navigated(ctx, e)
			h.itemStored(e)
			if h.attached(e) && straggle == nil {
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

// attached notes a target that attached; it reports whether it is a held tab.
// Pages that ran before (the spare's) and workers are not: a worker is let go
// at once, for its page waits and the jar is the profile's own; an extension's
// needs no page, and waits for what Chrome kept of it in memory.
func (h *Tabs) attached(e mux.Event) bool {
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
		h.startFrame(e.SessionID, at.SessionID)
		return false
	default:
		if h.draining || !h.workersRun && strings.HasPrefix(at.TargetInfo.URL, "chrome-extension:") {
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
func (h *Tabs) post(s target.SessionID, method string, params any) {
	// A lost pipe shows at the next call that is awaited.
	_ = h.env.Driver.Post(h.env.Life, s, method, params)
}

// RunWorkers lets the extensions' workers go, those that come later too.
func (h *Tabs) RunWorkers() {
	for _, s := range h.workers {
		h.runWorker(s)
	}
	h.workers, h.workersRun = nil, true
}

// runWorker lets a worker go. One that is detached before it has answered never runs,
// so end waits for the answers.
func (h *Tabs) runWorker(s target.SessionID) {
	h.starting.Go(func() {
		ctx, cancel := context.WithTimeout(h.env.Life, releaseDeadline)
		defer cancel()
		_, _ = cdp.Call(ctx, h.env.Driver.Session(s), runtime.RunIfWaitingForDebugger, cdp.Empty{}) // one that ended meanwhile waits for nothing
	})
}

// run lets a tab go, with what the session sets on each.
func (h *Tabs) run(t *heldTab) {
	h.env.Targets.InitialiseHeld(h.env.Life, t.info.TargetID)
	h.post(t.session, runtime.RunIfWaitingForDebugger.Method, nil)
}

// runBlank lets a blank tab go and returns once it has what the session sets on
// each, so that it may navigate.
func (h *Tabs) runBlank(ctx context.Context, t *heldTab) error {
	h.run(t)
	return h.env.Targets.Applied(ctx, t.info.TargetID)
}

// match finds for each saved tab the held one that shows its URL and has its
// back/forward list, where that was asked for; nil where none does. Targets
// have new IDs after a restore, so this decides, and order among equals.
func (h *Tabs) match(tabs []state.Tab) []*heldTab {
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
func (h *Tabs) activate(ctx context.Context, t *heldTab) {
	_, _ = cdp.Call(ctx, h.env.Driver, target.ActivateTarget, target.ActivateTargetParams{TargetID: t.info.TargetID})
}
