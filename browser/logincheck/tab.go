package logincheck

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/targetinit"
)

// checkWidth and checkHeight are the size of a check's page in CSS pixels. A hidden page
// has none unless one is set.
const checkWidth, checkHeight = 1280, 900

// closeDeadline bounds the closing of a tab, which takes milliseconds.
const closeDeadline = 5 * time.Second

// Driver is the daemon's CDP connection to one Chrome.
type Driver interface {
	targetinit.Driver
	// OpenHidden opens a blank tab that does not belong to the environment.
	OpenHidden(ctx context.Context) (target.ID, error)
}

// Targets has the session's targets and their setups; see [targetinit.Initialiser].
type Targets interface {
	PageSetups() []targetinit.Setup
	Targets() []*targetinit.Target
}

// Tab is the hidden tab of one check. A goroutine handles its events until it is closed.
// It paints no frames, so requestAnimationFrame callbacks of its page never run.
type Tab struct {
	driver  Driver
	targets Targets
	setups  []targetinit.Setup // the setups applied here
	id      target.ID
	on      target.SessionID
	session cdp.Session
	stop    func()
	events  sync.WaitGroup

	mu      sync.Mutex
	request network.RequestID // of the first document
	status  int64             // of its first answer
	failed  bool              // its first document failed to load
	traffic traffic
}

// Open opens a tab; the caller must close it. The tab gets the setups of the session's
// own pages. initialised says that the initialiser attaches to hidden targets itself and
// applies them.
func Open(ctx context.Context, driver Driver, targets Targets, initialised bool) (*Tab, error) {
	id, err := driver.OpenHidden(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tab{driver: driver, targets: targets, id: id}
	if !initialised {
		t.setups = targets.PageSetups()
	}
	yes := true
	at, err := cdp.Call(ctx, driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
		defer cancel()
		_, _ = cdp.Call(ctx, driver, target.CloseTarget, target.CloseTargetParams{TargetID: id})
		return nil, err
	}
	t.on, t.session = at.SessionID, driver.Session(at.SessionID)
	t.listen(ctx)
	if err := t.prepare(ctx); err != nil {
		_ = t.Close(ctx) // the first error is the one to report
		return nil, err
	}
	return t, nil
}

// prepare sets the tab's size and applies the setups.
func (t *Tab) prepare(ctx context.Context) error {
	if _, err := cdp.Call(ctx, t.session, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: checkWidth, Height: checkHeight, DeviceScaleFactor: 1}); err != nil {
		return err
	}
	for _, s := range t.setups {
		s.Initialise(ctx, t.target())
	}
	if _, err := cdp.Call(ctx, t.session, page.Enable, page.EnableParams{}); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, t.session, network.Enable, network.EnableParams{})
	return err
}

// target returns the tab in the form that setups take.
func (t *Tab) target() *targetinit.Target {
	return targetinit.NewTarget(t.driver, t.on, &target.Info{TargetID: t.id, Type: "page"})
}

// listen records the first answer, and dismisses dialogs, which would block the page.
func (t *Tab) listen(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	events, stop := t.driver.Events(network.RequestWillBeSent.Method, network.ResponseReceived.Method,
		network.LoadingFinished.Method, network.LoadingFailed.Method, network.WebSocketCreated.Method, network.WebSocketClosed.Method,
		page.FrameNavigated.Method, page.JavascriptDialogOpening.Method, target.DetachedFromTarget.Method)
	t.stop = func() { cancel(); stop() }
	t.events.Go(func() {
		for e := range events {
			if t.handle(ctx, e) {
				return
			}
		}
	})
}

// handle handles an event and reports whether the tab is closed.
func (t *Tab) handle(ctx context.Context, e mux.Event) bool {
	if e.Method == target.DetachedFromTarget.Method {
		var gone target.EventDetachedFromTarget
		return json.Unmarshal(e.Params, &gone) == nil && gone.SessionID == t.on
	}
	if e.SessionID != t.on {
		return false
	}
	switch e.Method {
	case page.JavascriptDialogOpening.Method:
		// A closed tab has no dialog.
		_, _ = cdp.Call(ctx, t.session, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	case network.RequestWillBeSent.Method:
		var sent network.EventRequestWillBeSent
		if json.Unmarshal(e.Params, &sent) != nil {
			return false
		}
		t.recordTraffic(func(under *traffic) { under.began(sent.RequestID, sent.LoaderID) })
		if sent.Type == network.ResourceTypeDocument && sent.FrameID == cdp.FrameID(t.id) {
			t.sent(sent)
		}
	case network.WebSocketCreated.Method:
		var created network.EventWebSocketCreated
		if json.Unmarshal(e.Params, &created) == nil {
			t.recordTraffic(func(under *traffic) { under.began(created.RequestID, "") })
		}
	case network.LoadingFinished.Method, network.WebSocketClosed.Method:
		var ended struct {
			RequestID network.RequestID `json:"requestId"`
		}
		if json.Unmarshal(e.Params, &ended) == nil {
			t.recordTraffic(func(under *traffic) { under.ended(ended.RequestID) })
		}
	case page.FrameNavigated.Method:
		var at page.EventFrameNavigated
		if json.Unmarshal(e.Params, &at) == nil && at.Frame != nil && at.Frame.ID == cdp.FrameID(t.id) {
			t.recordTraffic(func(under *traffic) { under.replaced(at.Frame.LoaderID) })
		}
	case network.ResponseReceived.Method:
		var got network.EventResponseReceived
		if json.Unmarshal(e.Params, &got) == nil && got.Response != nil {
			t.answer(got.RequestID, got.Response.Status)
		}
	case network.LoadingFailed.Method:
		var failed network.EventLoadingFailed
		if json.Unmarshal(e.Params, &failed) == nil {
			t.mu.Lock()
			t.failed = t.failed || failed.RequestID == t.request
			t.traffic.ended(failed.RequestID)
			t.mu.Unlock()
		}
	}
	return false
}

func (t *Tab) recordTraffic(what func(*traffic)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what(&t.traffic)
}

// openRequests returns the number of open requests and WebSockets, and the number of all
// so far.
func (t *Tab) openRequests() (open, count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.traffic.open), t.traffic.count
}

func (t *Tab) sent(e network.EventRequestWillBeSent) {
	t.mu.Lock()
	if t.request == "" {
		t.request = e.RequestID
	}
	t.mu.Unlock()
	// Chrome's own redirect from http: to https: (HSTS) is not an answer of the site.
	if r := e.RedirectResponse; r != nil && strings.Replace(r.URL, "http:", "https:", 1) != e.Request.URL {
		t.answer(e.RequestID, r.Status)
	}
}

// answer records the status of the first document's first answer.
func (t *Tab) answer(request network.RequestID, status int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if request == t.request && t.status == 0 {
		t.status = status
	}
}

// firstAnswer returns the status of the first answer (0 before it arrives), and whether
// the request has failed.
func (t *Tab) firstAnswer() (status int64, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.failed
}

// Close closes the tab and returns once it is closed. In a dead Chrome there is nothing
// to close.
func (t *Tab) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
	defer cancel()
	defer context.AfterFunc(ctx, t.stop)()
	_, err := cdp.Call(ctx, t.driver, target.CloseTarget, target.CloseTargetParams{TargetID: t.id})
	if err != nil {
		t.stop()
	}
	t.events.Wait()
	t.stop()
	for _, s := range t.setups {
		s.TargetClosed(ctx, t.target(), t.targets.Targets())
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
