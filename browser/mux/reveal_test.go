package mux

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/target"
)

// A client that connects while a page is sent away learns of the page once it is visible:
// it gets the page's targetCreated, and Chrome attaches it. Puppeteer's connect would never
// return otherwise.
func TestRevealedPageIsAnnounced(t *testing.T) {
	const page = `{"targetInfo":{"targetId":"P","type":"page","url":"about:blank"}}`
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method != "Target.getTargetInfo" {
			return nil
		}
		f.answer(q, page)
		return []byte{}
	})
	m.Hooks.OnForeign(func(target.ID) {})
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"T","type":"tab","url":""}}`)
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"chrome://version/"}}`)
	c, other := connect(t, m, ServeOptions{}), connect(t, m, ServeOptions{})
	other.call(1, "", "Target.setDiscoverTargets", `{"discover":true}`)
	other.call(2, "", "Target.setDiscoverTargets", `{"discover":false}`)
	other.call(3, "", "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true}`)
	other.call(4, "", "Target.setAutoAttach", `{"autoAttach":false,"waitForDebuggerOnStart":false}`)
	root := `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true,"filter":[{"type":"page","exclude":true},{}]}`
	tab := `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true,"filter":[{}]}`
	c.call(1, "", "Target.setDiscoverTargets", `{"discover":true,"filter":[{}]}`)
	c.call(2, "", "Target.setAutoAttach", root)
	var at struct{ SessionID string }
	c.result(3, "", "Target.attachToTarget", `{"targetId":"T","flatten":true}`, &at)
	c.call(4, at.SessionID, "Target.setAutoAttach", tab)
	f.emit("", "Target.targetInfoChanged", page)
	c.call(5, "", "Target.getBrowserContexts", `{}`) // the mux has read the event
	if !m.RevealIfAllowed("P") {
		t.Fatal("the page is not visible")
	}
	if e := c.recv(); e.Method != "Target.targetCreated" || string(e.Params) != page || e.Session != "" {
		t.Errorf("the client got %s %s on %q", e.Method, e.Params, e.Session)
	}
	// The fake gets two commands from each client, and one more for each session that waits
	// for targets.
	for _, q := range f.wait(6, method("Target.setAutoAttach"))[4:] {
		if want := map[bool]string{true: tab, false: root}[q.Session == at.SessionID]; string(q.Params) != want {
			t.Errorf("on %q Chrome got %s, want %s", q.Session, q.Params, want)
		}
	}
	if got := other.call(5, "", "Target.getBrowserContexts", `{}`); got.Error != nil {
		t.Errorf("the other client got %+v", got)
	}
}

// A page that shows a foreign address again before it is announced is not announced.
func TestForeignPageIsNotAnnounced(t *testing.T) {
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method != "Target.getTargetInfo" {
			return nil
		}
		f.answer(q, `{"targetInfo":{"targetId":"P","type":"page","url":"chrome://version/"}}`)
		f.emit("S1", "Target.targetCreated", `{"targetInfo":{"targetId":"Q","type":"page","url":"http://a/"}}`) // the last
		return []byte{}
	})
	m.Hooks.OnForeign(func(target.ID) {})
	c := connect(t, m, ServeOptions{})
	c.call(1, "", "Target.setDiscoverTargets", `{"discover":true}`)
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"chrome://version/"}}`)
	f.emit("", "Target.targetInfoChanged", `{"targetInfo":{"targetId":"P","type":"page","url":"about:blank"}}`)
	c.call(2, "", "Target.getBrowserContexts", `{}`) // the mux has read the events
	if !m.RevealIfAllowed("P") {
		t.Fatal("the page is not visible")
	}
	if e := c.recv(); !strings.Contains(string(e.Params), "http://a/") {
		t.Errorf("the client got %s %s", e.Method, e.Params)
	}
}

// What a session's client has requested follows its last commands.
func TestWatch(t *testing.T) {
	var w watch
	for _, c := range []struct {
		params string
		finds  string // of page, tab, browser
	}{
		{`{"discover":true}`, "page"},
		{`{"discover":true,"filter":[{}]}`, "page tab browser"},
		{`{"discover":true,"filter":[{"type":"page","exclude":true},{}]}`, "tab browser"},
		{`{"discover":true,"filter":[]}`, ""},
		{`{"discover":"yes"}`, ""}, // Chrome refuses it
		{`{"discover":true,"filter":[{"type":"tab"}]}`, "tab"},
		{`{"discover":false}`, ""},
	} {
		w.record("Target.setDiscoverTargets", []byte(c.params))
		var finds []string
		for _, kind := range []string{"page", "tab", "browser"} {
			if w.discovers(kind) {
				finds = append(finds, kind)
			}
		}
		if got := strings.Join(finds, " "); got != c.finds {
			t.Errorf("%s: %q, want %q", c.params, got, c.finds)
		}
	}
	large, err := json.Marshal(strings.Repeat("x", watchLimit))
	if err != nil {
		t.Fatal(err)
	}
	w.record("Target.setAutoAttach", []byte(`{"autoAttach":true}`))
	if w.attach == nil {
		t.Error("a command is not kept")
	}
	// To repeat the earlier command would undo this one.
	w.record("Target.setAutoAttach", fmt.Appendf(nil, `{"autoAttach":true,"filter":[{"type":%s}]}`, large))
	if w.attach != nil {
		t.Errorf("a command of %d bytes is kept", len(w.attach))
	}
}

// A client may change what it watches while a page is announced.
func TestWatchChangesDuringReveal(t *testing.T) {
	const commands = 100
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method != "Target.getTargetInfo" {
			return nil
		}
		f.answer(q, `{"targetInfo":{"targetId":"P","type":"page","url":"about:blank"}}`)
		return []byte{}
	})
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"about:blank"}}`)
	c := connect(t, m, ServeOptions{})
	var reveals sync.WaitGroup
	reveals.Go(func() {
		for range commands {
			m.RevealIfAllowed("P")
		}
	})
	for n := range int64(commands) {
		c.call(n, "", "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true}`)
	}
	reveals.Wait()
	f.wait(commands, method("Target.setAutoAttach"))
}
