package restore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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

// tabDeadline bounds the wait for a profile's first tab, which takes Chrome 70–250 ms.
const tabDeadline = 20 * time.Second

// Tabs are the tabs of a profile that is being restored. They do not run until they
// are released. Tabs belongs to one goroutine at a time: the restore's, then that of
// Settle.
type Tabs struct {
	env    Environment
	events <-chan mux.Event
	stop   func()
	tabs   []*heldTab
	// workers are the waiting workers of extensions, which run once their storage has
	// been applied. workersRun is set from then on, and later workers run at once. While
	// draining, they are the only targets that still wait.
	workers              []target.SessionID
	starting             sync.WaitGroup // workers that were allowed to run and have not answered, frames that get their script
	workersRun, draining bool
	// direct: the code attaches to each tab explicitly, and no target waits.
	direct bool
	// joined: the tabs joined a window that was open, so that none of them is in front yet.
	joined bool
}

// heldTab is one page target that waits.
type heldTab struct {
	session target.SessionID
	info    *target.Info
	list    *page.GetNavigationHistoryResult // the back/forward list as Chrome restored it; nil if it was not read
	history *page.GetNavigationHistoryResult // list, if tabs are matched by it
	loading bool                             // it is loading its address
	running bool                             // it was open before and does not wait
	script  *tabScript                       // nil if no script applies anything in it
}

// Hold attaches to every new target and pauses it before it runs.
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

// Stop ends the handling of events. The tabs end with their Chrome.
func (h *Tabs) Stop() { h.stop() }

// AwaitJoined waits until the expected number of tabs is held, which the session file
// has. They join a window with a blank tab. If the document's tabs are restored in another
// way than from the session file, or if that has none, the blank tab counts as the last of
// the held tabs. Otherwise it is left over: the caller closes it.
func (h *Tabs) AwaitJoined(ctx context.Context, expected int, from Source, blank *target.Info) (leftOver bool, err error) {
	h.joined = true
	if err := h.Await(ctx, expected); err != nil {
		return false, err
	}
	switch {
	case from == SourceNone:
		return false, nil
	case from == SourceProfile && len(h.tabs) > 0:
		for _, t := range h.tabs {
			_, _ = h.historyOf(ctx, t) // read now, beside what else is asked; a release tries again
		}
		return true, nil
	}
	yes := true
	at, err := cdp.Call(ctx, h.env.Driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: blank.TargetID, Flatten: &yes})
	if err != nil {
		return false, err
	}
	h.tabs = append(h.tabs, &heldTab{session: at.SessionID, info: blank, running: true})
	return false, nil
}

// Await waits until the expected number of tabs is held; ctx bounds the whole wait. Once one
// tab is there, the others follow within milliseconds, each after the last. So Await waits only
// for lateTabDeadline after a tab for those that Chrome does not restore.
func (h *Tabs) Await(ctx context.Context, expected int) error {
	first := len(h.tabs)
	late := time.NewTimer(tabDeadline)
	defer late.Stop()
	handle := func(e mux.Event) {
		h.navigated(e)
		h.itemStored(e)
		if h.attached(e) {
			late.Reset(lateTabDeadline)
		}
	}
	for len(h.tabs) < expected {
		select {
		case e, ok := <-h.events:
			if !ok {
				return errors.New("the connection to Chrome ended")
			}
			handle(e)
		case <-late.C:
			have := len(h.tabs)
			h.untilNow(ctx, handle) // the daemon may be the one that is late
			switch {
			case len(h.tabs) > have:
			case have == first:
				return context.DeadlineExceeded
			default:
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// attached handles a target that attached, and reports whether it is a held tab. Pages
// that ran before (the spare's) and workers are not. A site's worker runs at once: its
// page waits, and the cookie jar is the profile's own. An extension's worker needs no
// page, so it waits until the storage that Chrome keeps in memory only has been applied.
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

// post sends a command without waiting for the answer: a paused target answers most
// commands only when it runs, but handles them in order.
func (h *Tabs) post(s target.SessionID, method string, params any) {
	// The next call that waits for an answer reports a lost pipe.
	_ = h.env.Driver.Post(h.env.Life, s, method, params)
}

// RunWorkers lets the extensions' workers run, and also those that attach later.
func (h *Tabs) RunWorkers() {
	for _, s := range h.workers {
		h.runWorker(s)
	}
	h.workers, h.workersRun = nil, true
}

// runWorker lets a worker run. A worker that is detached before it has answered never
// runs, so end waits for the answers.
func (h *Tabs) runWorker(s target.SessionID) {
	h.starting.Go(func() {
		ctx, cancel := context.WithTimeout(h.env.Life, releaseDeadline)
		defer cancel()
		_, _ = cdp.Call(ctx, h.env.Driver.Session(s), runtime.RunIfWaitingForDebugger, cdp.Empty{}) // a worker that has ended does not wait
	})
}

// run lets a tab run, after the session's setup of it.
func (h *Tabs) run(t *heldTab) {
	if t.running {
		return
	}
	h.env.Targets.InitialiseHeld(h.env.Life, t.info.TargetID)
	h.post(t.session, runtime.RunIfWaitingForDebugger.Method, nil)
}

// runBlank lets a blank tab run and returns once the session's setup of it is done, so
// that it may navigate.
func (h *Tabs) runBlank(ctx context.Context, t *heldTab) error {
	if t.running {
		return nil
	}
	h.run(t)
	return h.env.Targets.WaitApplied(ctx, t.info.TargetID)
}

// match finds for each saved tab the held tab that shows its URL and has its back/forward
// list, if that was read; nil if there is none. Targets have new IDs after a restore, so
// URL and list decide, and order among equals.
func (h *Tabs) match(tabs []state.Tab) []*heldTab {
	matched := make([]*heldTab, len(tabs))
	used := map[*heldTab]bool{}
	for i, tab := range tabs {
		for _, t := range h.tabs {
			if !used[t] && t.info.URL == tab.URL && t.historyMatches(tab) {
				matched[i], used[t] = t, true
				break
			}
		}
	}
	return matched
}

// addNavigated completes a match by the tabs that navigated after they were read and before
// Chrome closed: first within their origin, then anywhere. Without this they would be
// reported as lost, although Chrome restored them.
func addNavigated(matched, held []*heldTab, tabs []state.Tab) []*heldTab {
	for _, fits := range []func(tab state.Tab, url string) bool{
		state.Tab.SameOrigin, func(state.Tab, string) bool { return true },
	} {
		for i, tab := range tabs {
			if matched[i] != nil {
				continue
			}
			at := slices.IndexFunc(held, func(t *heldTab) bool {
				return !slices.Contains(matched, t) && !t.blank() && fits(tab, t.info.URL)
			})
			if at >= 0 {
				matched[i] = held[at]
			}
		}
	}
	return matched
}

// activate brings a tab to the front. A tab for which this fails stays open in the
// background.
func (h *Tabs) activate(ctx context.Context, t *heldTab) {
	_, _ = cdp.Call(ctx, h.env.Driver, target.ActivateTarget, target.ActivateTargetParams{TargetID: t.info.TargetID})
}
