package mux

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// sharingChrome is a fake Chrome that opens pages. Like Chrome, it reports a tab and its page to
// each session with auto-attach before it answers Target.createTarget.
type sharingChrome struct {
	pages atomic.Int64
	roots []string // sessions with auto-attach; only the fake's goroutine uses it
	quiet bool     // it does not answer Target.createTarget, nor what the mux asks after it
}

func (s *sharingChrome) handle(f *fake, m message) []byte {
	switch m.Method {
	case "Target.setAutoAttach":
		s.roots = append(s.roots, m.Session)
		f.answer(m, `{}`)
	case "Target.createTarget":
		s.open(f, "")
		if s.quiet {
			return []byte{}
		}
		f.answer(m, fmt.Sprintf(`{"targetId":"P%d"}`, s.pages.Load()))
	case "Browser.getVersion":
		if !s.quiet { // Chrome answers in order
			f.answer(m, `{}`)
		}
	case "Target.closeTarget":
		f.answer(m, `{"success":true}`)
		f.emit("", "Target.targetDestroyed", fmt.Sprintf(`{"targetId":%q}`, m.param("targetId")))
	default:
		return nil
	}
	return []byte{}
}

// open reports a new page. Like Chrome, it does nothing else between a tab and its page.
func (s *sharingChrome) open(f *fake, opener string) {
	n := s.pages.Add(1)
	tab := fmt.Sprintf(`{"targetInfo":{"targetId":"T%d","type":"tab","url":"","browserContextId":"DEFAULT"}`, n)
	page := fmt.Sprintf(`{"targetInfo":{"targetId":"P%d","type":"page","url":"","browserContextId":"DEFAULT","openerId":%q}`, n, opener)
	events := func(kind, info string) []string {
		all := []string{`{"method":"Target.targetCreated","params":` + info + `}}`}
		for _, root := range s.roots {
			all = append(all, fmt.Sprintf(`{"method":"Target.attachedToTarget","params":%s,"sessionId":"%s-%s%d"},"sessionId":%q}`, info, root, kind, n, root))
		}
		return all
	}
	f.send([]byte(strings.Join(append(events("T", tab), events("P", page)...), "\x00")))
}

// attachments returns what the client got until an answer: "target context" of each attachment.
func (c *testConn) attachments(id int64) (seen []string, answer message) {
	c.t.Helper()
	for {
		m := c.recv()
		if m.ID != nil && *m.ID == id {
			return seen, m
		}
		if m.Method == "Target.attachedToTarget" {
			var a targetEvent
			if err := json.Unmarshal(m.Params, &a); err != nil {
				c.t.Fatal(err)
			}
			seen = append(seen, a.TargetInfo.TargetID+" "+a.TargetInfo.BrowserContextID)
		}
	}
}

func (c *testConn) ask(id int64, method, params string) {
	c.send(fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, id, method, params))
}

// Pages belong to the client that made them, also if several clients make pages at once and
// Chrome reports each page before its answer.
func TestSharedPages(t *testing.T) {
	chrome := &sharingChrome{}
	m, f := start(t, Options{}, chrome.handle)
	a, b, plain := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{})
	for _, c := range []*testConn{a, b, plain} {
		c.call(2, "", "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true}`)
	}
	ours, theirs := a.context(1), b.context(1)
	if ours == theirs {
		t.Fatal("two clients have the same context")
	}
	a.ask(3, "Target.createTarget", fmt.Sprintf(`{"url":"about:blank","browserContextId":%q}`, ours))
	seen, answer := a.attachments(3)
	if got, want := fmt.Sprint(seen), fmt.Sprintf("[T1 %s P1 %s]", ours, ours); got != want || string(answer.Result) != `{"targetId":"P1"}` {
		t.Errorf("the maker sees %s, and the answer %s; want %s", got, answer.Result, want)
	}
	if got := f.wait(1, method("Target.createTarget"))[0]; got.param("browserContextId") != "<nil>" || got.param("newWindow") != "true" {
		t.Errorf("Chrome got %s", got.Params)
	}
	b.ask(4, "Target.getTargets", `{}`)
	if seen, _ := b.attachments(4); len(seen) != 0 {
		t.Errorf("the other client sees %s", seen)
	}
	plain.ask(4, "Target.getTargets", `{}`)
	if seen, _ := plain.attachments(4); fmt.Sprint(seen) != "[T1 DEFAULT P1 DEFAULT]" {
		t.Errorf("a client without shared contexts sees %s", seen)
	}

	// A pop-up belongs to the context of its opener; a page that no client made, to everybody.
	chrome.open(f, "P1")
	chrome.open(f, "")
	for _, c := range []*testConn{a, b} {
		c.ask(5, "Target.getTargets", `{}`)
		seen, _ := c.attachments(5)
		want := "[T3 DEFAULT P3 DEFAULT]"
		if c == a {
			want = fmt.Sprintf("[T2 %s P2 %s T3 DEFAULT P3 DEFAULT]", ours, ours)
		}
		if fmt.Sprint(seen) != want {
			t.Errorf("after a pop-up a client sees %s, want %s", seen, want)
		}
	}

	// The end of a context closes its pages, and answers then.
	if got := a.call(6, "", "Target.disposeBrowserContext", fmt.Sprintf(`{"browserContextId":%q}`, ours)); string(got.Result) != `{}` {
		t.Errorf("dispose: %+v", got)
	}
	if closed := f.wait(2, method("Target.closeTarget")); len(closed) != 2 {
		t.Errorf("%d pages were closed", len(closed))
	}
	if got := a.call(7, "", "Target.createTarget", fmt.Sprintf(`{"url":"about:blank","browserContextId":%q}`, ours)); got.Error == nil || !strings.Contains(got.Error.Message, "Failed to find browser context") {
		t.Errorf("a page in a context that has ended: %+v", got)
	}
	if got := b.call(8, "", "Target.disposeBrowserContext", `{"browserContextId":"DEFAULT"}`); got.Error == nil {
		t.Error("the default context was disposed of")
	}
}

// A page that Chrome is still opening when its client disconnects is closed.
func TestSharedPageOfAClientThatLeft(t *testing.T) {
	chrome := &sharingChrome{quiet: true}
	m, f := start(t, Options{}, chrome.handle)
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	var r struct{ BrowserContextID string }
	if err := json.Unmarshal(c.call(1, "", "Target.createBrowserContext", `{}`).Result, &r); err != nil {
		t.Fatal(err)
	}
	c.ask(2, "Target.createTarget", fmt.Sprintf(`{"url":"about:blank","browserContextId":%q}`, r.BrowserContextID))
	created := f.wait(1, method("Target.createTarget"))[0]
	close(c.in)
	if err := c.gone(CloseNormal); err != nil {
		t.Fatal(err)
	}
	f.answer(created, `{"targetId":"P1"}`)
	if closed := f.wait(1, method("Target.closeTarget"))[0]; closed.param("targetId") != "P1" {
		t.Errorf("closed %s", closed.Params)
	}
}

// context creates a context.
func (c *testConn) context(id int64) string {
	c.t.Helper()
	var r struct{ BrowserContextID string }
	c.result(id, "", "Target.createBrowserContext", `{}`, &r)
	return r.BrowserContextID
}

const autoAttach = `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true}`

// A page of a shared context that becomes visible again is announced in its context.
func TestSharedPageIsAnnounced(t *testing.T) {
	chrome := &sharingChrome{}
	m, _ := start(t, Options{}, func(f *fake, m message) []byte {
		if m.Method == "Target.getTargetInfo" {
			f.answer(m, `{"targetInfo":{"targetId":"P1","type":"page","browserContextId":"DEFAULT"}}`)
			return []byte{}
		}
		return chrome.handle(f, m)
	})
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	ours := c.context(1)
	c.call(2, "", "Target.setDiscoverTargets", `{"discover":true}`)
	c.call(3, "", "Target.createTarget", fmt.Sprintf(`{"url":"about:blank","browserContextId":%q}`, ours))
	if !m.RevealIfAllowed("P1") {
		t.Fatal("the page is not visible")
	}
	if e := c.recv(); e.Method != "Target.targetCreated" || !strings.Contains(string(e.Params), fmt.Sprintf(`"browserContextId":%q`, ours)) {
		t.Errorf("the client got %s %s", e.Method, e.Params)
	}
}

// What is in a page is hidden with it, and so are contexts that Chrome has.
func TestSharedHidden(t *testing.T) {
	chrome := &sharingChrome{}
	m, f := start(t, Options{}, func(f *fake, m message) []byte {
		switch m.Method {
		case "Target.getTargets":
			f.answer(m, `{"targetInfos":[{"targetId":"P1","type":"page"},{"targetId":"F1","type":"iframe","parentId":"P1"},{"targetId":"F2","type":"iframe","parentId":"F1"},{"targetId":"W1","type":"worker","parentId":"P1"},`+
				`{"targetId":"R1","type":"page","subtype":"prerender"},{"targetId":"E1","type":"page","browserContextId":"EMPTY"},{"targetId":"P0","type":"page"}]}`)
			return []byte{}
		case "Target.createBrowserContext":
			f.answer(m, `{"browserContextId":"EMPTY"}`)
			return []byte{}
		}
		return chrome.handle(f, m)
	})
	a, b, plain := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{})
	plain.context(1)
	a.call(1, "", "Target.createTarget", fmt.Sprintf(`{"url":"about:blank","browserContextId":%q}`, a.context(2)))
	for _, info := range []string{`{"targetId":"F1","type":"iframe","parentId":"P1"}`, `{"targetId":"F2","type":"iframe","parentId":"F1"}`, `{"targetId":"W1","type":"worker","parentId":"P1"}`,
		`{"targetId":"R1","type":"page","subtype":"prerender"}`, `{"targetId":"E1","type":"page","browserContextId":"EMPTY"}`, `{"targetId":"P0","type":"page"}`} {
		f.emit("", "Target.targetCreated", `{"targetInfo":`+info+`}`)
	}
	for c, want := range map[*testConn]string{a: "P1 F1 F2 W1 P0 ", b: "P0 ", plain: "P1 F1 F2 W1 R1 E1 P0 "} {
		var all struct{ TargetInfos []targetInfo }
		c.result(3, "", "Target.getTargets", `{}`, &all)
		got := ""
		for _, info := range all.TargetInfos {
			got += info.TargetID + " "
		}
		if got != want {
			t.Errorf("a client sees %s, want %s", got, want)
		}
	}
	for _, id := range []string{"P1", "F1", "F2", "W1", "R1", "E1"} {
		if got := b.call(4, "", "Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, id)); got.Error == nil {
			t.Errorf("%s: %s", id, got.Result)
		}
	}
}

// While it is not known whose a page is, no answer shows it. Its events are held for those commands
// only that Chrome had before the page, and not for a client that has left.
func TestSharedUndecided(t *testing.T) {
	var creates []message
	chrome, created := &sharingChrome{}, make(chan message, 10)
	m, f := start(t, Options{}, func(f *fake, m message) []byte {
		if m.Method == "Target.createTarget" {
			created <- m
			return []byte{}
		}
		if m.Method == "Target.getTargets" {
			f.answer(m, `{"targetInfos":[{"targetId":"P1","type":"page"}]}`)
			return []byte{}
		}
		return chrome.handle(f, m)
	})
	a, gone, b := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	b.call(1, "", "Target.setAutoAttach", autoAttach)
	for i, c := range []*testConn{gone, a} {
		c.ask(int64(2+i), "Target.createTarget", `{"url":"about:blank"}`)
		creates = append(creates, <-created)
	}
	chrome.open(f, "") // P1, which nobody has made
	if answer := connect(t, m, ServeOptions{Shared: &SharedContexts{}}).call(1, "", "Target.getTargets", `{}`); string(answer.Result) != `{"targetInfos":[]}` {
		t.Errorf("undecided: %s", answer.Result)
	}
	b.ask(2, "Target.getTargets", `{}`)                      // its answer comes after the events that are held
	a.ask(5, "Target.createTarget", `{"url":"about:blank"}`) // after the page
	creates = append(creates, <-created)
	f.answer(creates[1], `{"targetId":"P9"}`)
	close(gone.in) // Chrome never answers its command
	_ = gone.gone(CloseNormal)
	if seen, _ := b.attachments(2); len(seen) != 2 {
		t.Errorf("before its answer the client sees %s", seen)
	}
}

// A tab without a page delays no client.
func TestSharedTabWithoutPage(t *testing.T) {
	chrome := &sharingChrome{}
	m, f := start(t, Options{}, chrome.handle)
	emit := func(root string) {
		tab := fmt.Sprintf(`"targetInfo":{"targetId":"T%s","type":"tab","url":""}`, root)
		f.emit("", "Target.targetCreated", "{"+tab+"}")
		if root != "" {
			f.emit(root, "Target.attachedToTarget", fmt.Sprintf(`{%s,"sessionId":"X"}`, tab))
		}
	}
	emit("")
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	c.call(1, "", "Target.setAutoAttach", autoAttach)
	root := f.wait(1, method("Target.setAutoAttach"))[0].Session
	f.emit(root, "Target.attachedToTarget", `{"targetInfo":{"targetId":"T","type":"tab","url":""},"sessionId":"Y"}`)
	if got := c.recv(); got.Method != "Target.attachedToTarget" {
		t.Errorf("%+v", got)
	}
	emit(root)
	if got := c.recv(); got.Method != "Target.attachedToTarget" {
		t.Errorf("%+v", got)
	}
}

// The events that are held for a client have its limit of unread messages.
func TestSharedHeldLimit(t *testing.T) {
	chrome := &sharingChrome{quiet: true}
	m, f := start(t, Options{QueueBytes: 10000}, chrome.handle)
	a, b := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	b.call(1, "", "Target.setAutoAttach", autoAttach)
	root := f.wait(1, method("Target.setAutoAttach"))[0].Session
	a.ask(1, "Target.createTarget", `{"url":"about:blank"}`)
	f.wait(1, method("Target.createTarget"))
	for range 100 {
		f.emit(root, "Network.dataReceived", `{"data":"`+strings.Repeat("x", 1000)+`"}`)
	}
	if err := b.gone(CloseTooSlow); err != nil {
		t.Error(err)
	}
}

// A page that comes after its context has ended closes. A page of the default context stays, and
// is everybody's once its client has left.
func TestSharedEnds(t *testing.T) {
	chrome := &sharingChrome{quiet: true}
	m, f := start(t, Options{}, chrome.handle)
	a, b := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	ours := a.context(1)
	a.ask(2, "Target.createTarget", fmt.Sprintf(`{"url":"about:blank","browserContextId":%q}`, ours))
	created := f.wait(1, method("Target.createTarget"))[0]
	a.call(3, "", "Target.disposeBrowserContext", fmt.Sprintf(`{"browserContextId":%q}`, ours))
	f.answer(created, `{"targetId":"P1"}`)
	if closed := f.wait(1, method("Target.closeTarget"))[0]; closed.param("targetId") != "P1" {
		t.Errorf("closed %s", closed.Params)
	}
	a.recv() // the answer

	a.ask(4, "Target.createTarget", `{"url":"about:blank"}`)
	f.answer(f.wait(2, method("Target.createTarget"))[1], `{"targetId":"P2"}`)
	a.recv()
	seen := func() bool {
		got := b.call(5, "", "Target.getTargetInfo", `{"targetId":"P2"}`)
		return got.Error == nil
	}
	if seen() {
		t.Error("the page of a connected client is visible to another")
	}
	close(a.in)
	_ = a.gone(CloseNormal)
	if !seen() {
		t.Error("the page of a client that has left is hidden")
	}
}
