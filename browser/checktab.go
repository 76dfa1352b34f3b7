package browser

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

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

// checkTab is the hidden tab of one check. A goroutine hears its events until
// it is closed.
type checkTab struct {
	b       *Browser
	id      target.ID
	on      target.SessionID
	session cdp.Session
	stop    func()
	heard   sync.WaitGroup

	mu      sync.Mutex
	request network.RequestID // of the first document
	status  int64             // of its first answer
	failed  bool              // it has no document
	traffic traffic
}

func (b *Browser) openCheckTab(ctx context.Context) (*checkTab, error) {
	id, err := b.driver.OpenHidden(ctx)
	if err != nil {
		return nil, err
	}
	t := &checkTab{b: b, id: id}
	yes := true
	at, err := cdp.Call(ctx, b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTabDeadline)
		defer cancel()
		_, _ = cdp.Call(ctx, b.driver, target.CloseTarget, target.CloseTargetParams{TargetID: id})
		return nil, err
	}
	t.on, t.session = at.SessionID, b.driver.Session(at.SessionID)
	t.listen(ctx)
	if err := t.prepare(ctx); err != nil {
		_ = t.close(ctx) // the first error is the one to tell
		return nil, err
	}
	return t, nil
}

// prepare gives the tab a size, and what the session's own pages are given:
// the initialiser attaches to hidden targets in the shell alone.
func (t *checkTab) prepare(ctx context.Context) error {
	if _, err := cdp.Call(ctx, t.session, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: checkWidth, Height: checkHeight, DeviceScaleFactor: 1}); err != nil {
		return err
	}
	for _, s := range t.missing() {
		s.Initialise(ctx, t.target())
	}
	if _, err := cdp.Call(ctx, t.session, page.Enable, page.EnableParams{}); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, t.session, network.Enable, network.EnableParams{})
	return err
}

// missing are the setups that the initialiser does not give the tab by itself.
func (t *checkTab) missing() []targetinit.Setup {
	if t.b.shell() {
		return nil
	}
	return t.b.targets.PageSetups()
}

// target is the tab as a setup takes it.
func (t *checkTab) target() *targetinit.Target {
	return targetinit.NewTarget(t.b.driver, t.on, &target.Info{TargetID: t.id, Type: "page"})
}

// listen notes the first answer, and dismisses dialogs, which would hold the
// page up.
func (t *checkTab) listen(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	events, stop := t.b.driver.Events(network.RequestWillBeSent.Method, network.ResponseReceived.Method,
		network.LoadingFinished.Method, network.LoadingFailed.Method, network.WebSocketCreated.Method, network.WebSocketClosed.Method,
		page.FrameNavigated.Method, page.JavascriptDialogOpening.Method, target.DetachedFromTarget.Method)
	t.stop = func() { cancel(); stop() }
	t.heard.Go(func() {
		for e := range events {
			if t.hear(ctx, e) {
				return
			}
		}
	})
}

// hear takes an event; true says that the tab has gone.
func (t *checkTab) hear(ctx context.Context, e mux.Event) bool {
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

func (t *checkTab) note(what func(*traffic)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what(&t.traffic)
}

// underWay is how many requests and WebSockets are open, and how many there
// have been.
func (t *checkTab) underWay() (open, count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.traffic.open), t.traffic.count
}

func (t *checkTab) sent(e network.EventRequestWillBeSent) {
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
func (t *checkTab) answer(request network.RequestID, status int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if request == t.request && t.status == 0 {
		t.status = status
	}
}

// answered is the status of the first answer, 0 until it is there, and whether
// the request has failed.
func (t *checkTab) answered() (status int64, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status, t.failed
}

// close closes the tab and returns once it has gone; of a Chrome that has died
// nothing is left to close.
func (t *checkTab) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTabDeadline)
	defer cancel()
	defer context.AfterFunc(ctx, t.stop)()
	_, err := cdp.Call(ctx, t.b.driver, target.CloseTarget, target.CloseTargetParams{TargetID: t.id})
	if err != nil {
		t.stop()
	}
	t.heard.Wait()
	t.stop()
	for _, s := range t.missing() {
		s.Gone(ctx, t.target(), t.b.targets.Targets())
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
