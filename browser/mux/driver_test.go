package mux

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/google/go-cmp/cmp"
)

func drive(t *testing.T, m *Mux) *Driver {
	t.Helper()
	d, err := m.Driver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func TestDriverCalls(t *testing.T) {
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		switch q.Method {
		case "Browser.getVersion":
			f.answer(q, `{"product":"Chrome/1"}`)
		case "Page.enable":
			return fmt.Appendf(nil, `{"id":%d,"error":{"code":-32000,"message":"no"},"sessionId":%q}`, *q.ID, q.Session)
		case "Runtime.evaluate": // never answered
		default:
			return nil
		}
		return []byte{}
	})
	d := drive(t, m)
	v, err := cdp.Call(t.Context(), d, browser.GetVersion, cdp.Empty{})
	if err != nil || v.Product != "Chrome/1" {
		t.Errorf("%+v, %v", v, err)
	}
	var failed *cdproto.Error
	if err := d.Call(t.Context(), "Page.enable", nil, nil); !errors.As(err, &failed) || failed.Message != "no" {
		t.Errorf("Chrome's error came as %v", err)
	}
	if err := d.Session("nothing").Call(t.Context(), "Page.enable", nil, nil); !errors.As(err, &failed) || failed.Code != -32001 {
		t.Errorf("an unknown session: %v", err)
	}
	// The policy table does not apply to the driver.
	if err := d.Call(t.Context(), "Page.navigate", map[string]string{"url": "file:///x"}, nil); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Call(ctx, "Runtime.evaluate", nil, nil) }()
	f.wait(1, method("Runtime.evaluate"))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	m.requests.mu.Lock()
	defer m.requests.mu.Unlock()
	if len(m.requests.pending) != 0 {
		t.Errorf("%d requests remain", len(m.requests.pending))
	}
}

// Events of all sessions arrive in Chrome's order, and each session's own events too. A
// slow reader misses none. A detached session ends its subscriptions.
func TestDriverEvents(t *testing.T) {
	m, f := start(t, Options{}, func(_ *fake, q message) []byte {
		if q.Method == "Runtime.evaluate" {
			return []byte{}
		}
		return nil
	})
	d := drive(t, m)
	all, cancel := d.Events("A.a", "A.b")
	defer cancel()
	var r target.AttachToTargetResult
	if err := d.Call(t.Context(), "Target.attachToTarget", map[string]any{"targetId": "T", "flatten": true}, &r); err != nil {
		t.Fatal(err)
	}
	own, cancelOwn := d.Session(r.SessionID).Subscribe("A.a")
	defer cancelOwn()
	root := f.rootOf("")
	want := []Event{}
	for i := range 500 {
		e := Event{Method: "A.a", Params: fmt.Appendf(nil, `{"n":%d}`, i)}
		on := root
		if i%2 == 0 {
			e.SessionID, on = r.SessionID, string(r.SessionID)
		}
		if i%5 == 0 {
			e.Method = "A.b"
		}
		f.emit(on, e.Method, string(e.Params))
		f.emit(on, "A.c", "{}")
		want = append(want, e)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Session(r.SessionID).Call(context.Background(), "Runtime.evaluate", nil, nil) }()
	f.wait(1, method("Runtime.evaluate"))
	f.emit(root, "Target.detachedFromTarget", fmt.Sprintf(`{"sessionId":%q}`, r.SessionID))
	var failed *cdproto.Error
	if err := <-ended; !errors.As(err, &failed) || failed.Code != -32001 {
		t.Errorf("a call on a detached session: %v", err)
	}
	var mine, wantMine []string
	for e := range own {
		mine = append(mine, string(e))
	}
	for i, w := range want {
		if got := <-all; !cmp.Equal(got, w) {
			t.Fatalf("event %d is %+v, want %+v", i, got, w)
		}
		if w.SessionID != "" && w.Method == "A.a" {
			wantMine = append(wantMine, string(w.Params))
		}
	}
	if !cmp.Equal(mine, wantMine) {
		t.Error(cmp.Diff(wantMine, mine))
	}
}

// Clients cannot see Chrome's own interface or what the daemon hides: neither in a list
// nor in an event, and they cannot attach to it.
func TestHiddenTargets(t *testing.T) {
	infos := `{"targetInfos":[{"targetId":"P","type":"page","url":"http://a/"},{"targetId":"H","type":"page","url":"about:blank","browserContextId":"S"},{"targetId":"T","type":"tab","url":"about:blank","browserContextId":"S"},{"targetId":"U","type":"browser_ui","url":"chrome://omnibox/"},{"targetId":"D","type":"page","url":"devtools://devtools/x"}]}`
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method == "Target.getTargets" {
			f.answer(q, infos)
			return []byte{}
		}
		return nil
	})
	m.HideContext("S")
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"H","type":"page","url":"about:blank","browserContextId":"S"}}`)
	c := connect(t, m, ServeOptions{})
	if got, want := string(c.call(1, "", "Target.getTargets", "{}").Result), `{"targetInfos":[{"targetId":"P","type":"page","url":"http://a/"}]}`; got != want {
		t.Errorf("a client sees %s", got)
	}
	if got := c.call(2, "", "Target.attachToTarget", `{"targetId":"H","flatten":true}`); got.Error == nil {
		t.Error("a hidden target was attached to")
	}
	root := f.wait(1, method("Target.getTargets"))[0].Session
	f.emit(root, "Target.targetCreated", `{"targetInfo":{"targetId":"H","type":"page","url":"","browserContextId":"S"}}`)
	f.emit(root, "Target.targetCreated", `{"targetInfo":{"targetId":"T","type":"tab","url":"","browserContextId":"S"}}`)
	f.emit(root, "Target.attachedToTarget", `{"sessionId":"X","targetInfo":{"targetId":"U","type":"browser_ui","url":""}}`)
	f.emit(root, "Target.detachedFromTarget", `{"sessionId":"X"}`)
	f.emit("", "Target.targetDestroyed", `{"targetId":"H"}`)
	f.emit(root, "Target.targetDestroyed", `{"targetId":"H"}`)
	f.emit(root, "Target.targetDestroyed", `{"targetId":"P"}`)
	if e := c.recv(); e.Method != "Target.targetDestroyed" || e.param("targetId") != "P" {
		t.Errorf("got the event %+v", e)
	}
	q := f.wait(1, method("Target.detachFromTarget"))[0]
	if q.Session != root || q.param("sessionId") != "X" {
		t.Errorf("detached by %+v", q)
	}
	d := drive(t, m)
	var r target.GetTargetsResult
	if err := d.Call(t.Context(), "Target.getTargets", nil, &r); err != nil || len(r.TargetInfos) != 5 {
		t.Errorf("the driver sees %d targets, %v", len(r.TargetInfos), err)
	}
}

// The last page of the profile closes only after another was opened, even with several
// closes at once. Pages of clients' browser contexts do not count.
func TestLastPageStaysOpen(t *testing.T) {
	m, f := start(t, Options{KeepPage: true}, func(f *fake, q message) []byte {
		switch q.Method {
		case "Target.createBrowserContext":
			f.answer(q, `{"browserContextId":"made"}`)
			return []byte{}
		case "Target.createTarget":
			f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"B","type":"page","url":"about:blank","browserContextId":"own"}}`)
		}
		return nil
	})
	c := connect(t, m, ServeOptions{})
	c.call(1, "", "Target.createBrowserContext", "{}")
	for id, in := range map[string]string{"P": "own", "Q": "own", "I": "made"} {
		f.emit("", "Target.targetCreated", fmt.Sprintf(`{"targetInfo":{"targetId":%q,"type":"page","url":"http://a/","browserContextId":%q}}`, id, in))
	}
	for i, id := range []string{"I", "P", "Q"} {
		c.call(int64(i+2), "", "Target.closeTarget", fmt.Sprintf(`{"targetId":%q}`, id))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var order []string
	for _, q := range f.got {
		if q.Method == "Target.createTarget" || q.Method == "Target.closeTarget" {
			order = append(order, q.Method+" "+q.param("targetId"))
		}
	}
	want := []string{"Target.closeTarget I", "Target.closeTarget P", "Target.createTarget <nil>", "Target.closeTarget Q"}
	if !cmp.Equal(order, want) {
		t.Error(cmp.Diff(want, order))
	}
}
