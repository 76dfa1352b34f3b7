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

// checkWidth and checkHeight are the size of a check's page, which has none by
// itself, in CSS pixels.
const checkWidth, checkHeight = 1280, 900

// closeDeadline bounds how long a tab may take to go, which is a matter of
// milliseconds.
const closeDeadline = 5 * time.Second

// Driver is the daemon's CDP connection to one Chrome.
type Driver interface {
	targetinit.Driver
	// OpenHidden opens a blank tab that is no part of the environment.
	OpenHidden(ctx context.Context) (target.ID, error)
}

// Targets are those that the session sets something on; see [targetinit.Initialiser].
type Targets interface {
	PageSetups() []targetinit.Setup
	Targets() []*targetinit.Target
}

// Tab is the hidden tab of one check. A goroutine handles its events until it is
// closed. It paints no frames: a page that waits for one (requestAnimationFrame) waits
// in vain.
type Tab struct {
	driver  Driver
	targets Targets
	setups  []targetinit.Setup // given here
	id      target.ID
	on      target.SessionID
	session cdp.Session
	stop    func()
	events  sync.WaitGroup

	mu      sync.Mutex
	request network.RequestID // of the first document
	status  int64             // of its first answer
	failed  bool              // it has no document
	traffic traffic
}

// Open opens a tab; the caller closes it. It is given what the session's own pages are
// given, unless the initialiser attaches to hidden targets by itself, as initialised
// says.
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

// prepare gives the tab a size, and the setups.
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

// target is the tab as a setup takes it.
func (t *Tab) target() *targetinit.Target {
	return targetinit.NewTarget(t.driver, t.on, &target.Info{TargetID: t.id, Type: "page"})
}

// listen notes the first answer, and dismisses dialogs, which would hold the
// page up.
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

// handle takes an event; true says that the tab has gone.
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
		// A tab that has gone has no dialog.
		_, _ = cdp.Call(ctx, t.session, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	case network.RequestWillBeSent.Method:
		var sent network.EventRequestWillBeSent
		if json.Unmarshal(e.Params, &sent) != nil {
			return false
		}
		t.note(func(under *traffic) { under.began(sent.RequestID, sent.LoaderID) })
		if sent.Type == network.ResourceTypeDocument && sent.FrameID == cdp.FrameID(t.id) {
			t.sent(sent)
		}
	case network.WebSocketCreated.Method:
		var created network.EventWebSocketCreated
		if json.Unmarshal(e.Params, &created) == nil {
			t.note(func(under *traffic) { under.began(created.RequestID, "") })
		}
	case network.LoadingFinished.Method, network.WebSocketClosed.Method:
		var ended struct {
			RequestID network.RequestID `json:"requestId"`
		}
		if json.Unmarshal(e.Params, &ended) == nil {
			t.note(func(under *traffic) { under.ended(ended.RequestID) })
		}
	case page.FrameNavigated.Method:
		var at page.EventFrameNavigated
		if json.Unmarshal(e.Params, &at) == nil && at.Frame != nil && at.Frame.ID == cdp.FrameID(t.id) {
			t.note(func(under *traffic) { under.replaced(at.Frame.LoaderID) })
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

func (t *Tab) note(what func(*traffic)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what(&t.traffic)
}

// underWay is how many requests and WebSockets are open, and how many there
// have been.
func (t *Tab) underWay() (open, count int) {
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
	// Chrome's own step from http: to https: (HSTS) is no answer of the site's.
	if r := e.RedirectResponse; r != nil && strings.Replace(r.URL, "http:", "https:", 1) != e.Request.URL {
		t.answer(e.RequestID, r.Status)
	}
}

// answer notes the status of the first document's first answer.
func (t *Tab) answer(request network.RequestID, status int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if request == t.request && t.status == 0 {
		t.status = status
	}
}

// answered is the status of the first answer, 0 until it is there, and whether
// the request has failed.
func (t *Tab) answered() (status int64, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.failed
}

// Close closes the tab and returns once it has gone; of a Chrome that has died
// nothing is left to close.
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
		s.Gone(ctx, t.target(), t.targets.Targets())
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
