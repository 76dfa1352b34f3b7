package mux

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stasisd/stasis/state"
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

// What would damage the profile for other clients is refused, unless the client may.
func TestSharedWrites(t *testing.T) {
	handle := func(f *fake, m message) []byte {
		if m.Method != "Storage.getCookies" {
			return nil
		}
		f.answer(m, `{"cookies":[{"name":"session","value":"s","domain":".site.example","path":"/","expires":-1}]}`)
		return []byte{}
	}
	m, _ := start(t, Options{}, handle)
	script := `{"expression":"const script = new (module.exports.StorageScript())(1); return script.restore({})"}`
	for i, test := range []struct{ method, params, refused string }{
		{"Storage.clearCookies", `{}`, "log others out"},
		{"Network.clearBrowserCookies", `{}`, "log others out"},
		{"Storage.clearDataForOrigin", `{"origin":"https://site.example","storageTypes":"all"}`, "log others out"},
		{"Runtime.evaluate", script, "storageState"},
		{"Runtime.callFunctionOn", strings.Replace(script, "expression", "functionDeclaration", 1), "storageState"},
		{"Runtime.evaluate", strings.Replace(script, "restore", "collect", 1), ""},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://site.example/"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"s","url":"https://site.example:8080/"}]}`, ""},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://else.example/"}]}`, ""},
		{"Storage.setCookies", `{"cookies":[{"name":"theme","value":"dark","domain":"site.example","path":"/"}]}`, ""},
		{"Network.setCookie", `{"name":"session","value":"other","domain":"site.example"}`, `"session"`},
		// Chrome reads all these hosts as site.example (Chromium 156).
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://user:p@site.example/"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://site.example?x"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https:\\\\site.example\\"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https:site.example"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://s%69te.example/"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","domain":"s%69te.example"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://app.site.example/"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","domain":".site.example","path":"/app"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"s","domain":".site.example","expires":1}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"s","domain":".site.example","expires":0}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"s","domain":".site.example","expires":-1}]}`, ""},
		{"Storage.setCookies", `{"cookies":[{"name":"x","name":"session","value":"other","domain":".site.example"}]}`, "duplicate"},
		{"Network.deleteCookies", `{"name":"session","url":"https://site.example/"}`, `"session"`},
		{"Network.deleteCookies", `{"name":"theme","url":"https://site.example/"}`, ""},
		{"Storage.runBounceTrackingMitigations", `{}`, "log others out"},
		{"Storage.clearCookies", `{"x":1,"x":2}`, "duplicate"},
	} {
		for _, allow := range []bool{false, true} {
			c := connect(t, m, ServeOptions{Shared: &SharedContexts{AllowWrites: allow}})
			got := c.call(int64(i), "", test.method, test.params)
			if thrown := string(got.Result); strings.Contains(thrown, "exceptionDetails") {
				got.Error = &struct {
					Code    int
					Message string
				}{Message: thrown}
			}
			switch refused := test.refused != "" && !allow; {
			case refused && (got.Error == nil || !strings.Contains(got.Error.Message, test.refused)):
				t.Errorf("%s %s: %+v, want an error with %s", test.method, test.params, got, test.refused)
			case !refused && test.refused != "duplicate" && got.Error != nil:
				t.Errorf("%s %s, allowed %t: %+v", test.method, test.params, allow, got.Error)
			}
			close(c.in)
		}
	}
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{AllowWrites: true}})
	if got := c.call(1, "", "Target.createBrowserContext", `{"proxyServer":"http://127.0.0.1:1"}`); got.Error == nil || !strings.Contains(got.Error.Message, "one proxy") {
		t.Errorf("a context with a proxy: %+v", got)
	}
}

// A cookie that was not in the environment can be changed by clients, until a site changes it.
func TestSharedCookiesOfClients(t *testing.T) {
	jar := make(chan string, 1)
	now := `{"cookies":[]}`
	m, _ := start(t, Options{}, func(f *fake, m message) []byte {
		if m.Method != "Storage.getCookies" {
			return nil
		}
		select {
		case now = <-jar:
		default:
		}
		f.answer(m, now)
		return []byte{}
	})
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	for i, test := range []struct {
		jar, value string
		refused    bool
	}{
		{`{"cookies":[]}`, "oat", false},
		{`{"cookies":[{"name":"milk","value":"oat","domain":"site.example","path":"/"}]}`, "soy", false},
		{`{"cookies":[{"name":"milk","value":"cow","domain":"site.example","path":"/"}]}`, "soy", true},
	} {
		jar <- test.jar
		got := c.call(int64(i), "", "Storage.setCookies", fmt.Sprintf(`{"cookies":[{"name":"milk","value":%q,"url":"https://site.example/"}]}`, test.value))
		if (got.Error != nil) != test.refused {
			t.Errorf("%d: %+v", i, got.Error)
		}
	}
}

// Commands that set cookies reach Chrome in their order, and wait for one look at the jar each.
func TestSharedCookiesWait(t *testing.T) {
	asked := make(chan message, 10)
	m, f := start(t, Options{}, func(_ *fake, m message) []byte {
		if m.Method != "Storage.getCookies" {
			return nil
		}
		asked <- m
		return []byte{}
	})
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	c.ask(1, "Storage.setCookies", `{"cookies":[{"name":"a","value":"1","url":"https://site.example/"}]}`)
	go c.ask(2, "Page.navigate", `{"url":"https://site.example/"}`)
	first := <-asked
	f.answer(first, `{"cookies":[]}`)
	f.wait(1, method("Page.navigate"))
	f.mu.Lock()
	defer f.mu.Unlock()
	order := ""
	for _, m := range f.got {
		order += m.Method + " "
	}
	if !strings.Contains(order, "Storage.getCookies Storage.setCookies Page.navigate") {
		t.Errorf("Chrome got %s", order)
	}
}

// Chrome gets the union of the permissions of all contexts.
func TestSharedPermissions(t *testing.T) {
	m, f := start(t, Options{}, nil)
	a, b := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	grant := func(c *testConn, id int64, permissions string) {
		t.Helper()
		var r struct{ BrowserContextID string }
		if err := json.Unmarshal(c.call(id, "", "Target.createBrowserContext", `{}`).Result, &r); err != nil {
			t.Fatal(err)
		}
		if got := c.call(id+1, "", "Browser.grantPermissions", fmt.Sprintf(`{"origin":"https://a.example","permissions":%s,"browserContextId":%q}`, permissions, r.BrowserContextID)); got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	grant(a, 1, `["geolocation"]`)
	grant(b, 3, `["notifications","geolocation"]`)
	grant(a, 5, `["midi"]`)
	sent := f.wait(3, method("Browser.grantPermissions"))
	for i, want := range []string{"[geolocation]", "[geolocation notifications]", "[geolocation midi notifications]"} {
		if got := sent[i].param("permissions"); got != want || sent[i].Session != "" {
			t.Errorf("grant %d: Chrome got %s on %q, want %s", i, got, sent[i].Session, want)
		}
	}
	if got := m.Permissions.Granted(); len(got) != 0 {
		t.Errorf("the environment keeps %v", got)
	}
	close(b.in)
	_ = b.gone(CloseNormal)
	if got := fmt.Sprint(m.Permissions.InForce()); !strings.Contains(got, "[geolocation midi]") {
		t.Errorf("after a client has left, %s are in force", got)
	}
}

// Commands for the default context, also those of clients without shared contexts, keep the
// permissions of shared contexts. What Chrome refuses is not recorded.
func TestSharedPermissionsStay(t *testing.T) {
	m, f := start(t, Options{}, func(_ *fake, q message) []byte {
		if strings.Contains(string(q.Params), "refused") {
			return fmt.Appendf(nil, `{"id":%d,"error":{"code":-32000,"message":"no"}%s}`, *q.ID, sessionMember(q.Session))
		}
		return nil
	})
	regrants := make(chan string, 10)
	m.Hooks.OnRegrant(func(context.Context) { regrants <- fmt.Sprint(m.Permissions.InForce()) })
	a, plain := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{})
	in := fmt.Sprintf(`,"origin":"https://a.example","browserContextId":%q`, a.context(1))
	a.call(2, "", "Browser.grantPermissions", `{"permissions":["geolocation"]`+in+`}`)
	plain.call(3, "", "Browser.grantPermissions", `{"permissions":["camera"],"origin":"https://a.example"}`)
	a.call(4, "", "Browser.grantPermissions", `{"permissions":["midi"],"origin":"https://a.example"}`)
	sent := f.wait(3, method("Browser.grantPermissions"))
	for i, want := range []string{"[geolocation]", "[camera geolocation]", "[geolocation midi]"} {
		if got := sent[i].param("permissions"); got != want {
			t.Errorf("grant %d: Chrome got %s, want %s", i, got, want)
		}
	}
	if got := fmt.Sprint(m.Permissions.Granted()); got != "[{https://a.example  map[]  [midi]}]" {
		t.Errorf("the environment keeps %s", got)
	}
	plain.call(5, "", "Browser.resetPermissions", `{}`)
	if got := <-regrants; !strings.Contains(got, "[geolocation]") || len(m.Permissions.Granted()) != 0 {
		t.Errorf("after a reset, %s are in force", got)
	}
	if got := a.call(6, "", "Browser.grantPermissions", `{"permissions":["refused"]`+in+`}`); got.Error == nil {
		t.Error("not refused")
	}
	if got := fmt.Sprint(m.Permissions.InForce()); !strings.Contains(got, "[geolocation]") {
		t.Errorf("after a refusal, %s are in force", got)
	}
}

// The record of permissions is bounded for each client, and a client that has left adds nothing.
func TestSharedPermissionsLimit(t *testing.T) {
	m, f := start(t, Options{}, nil)
	a, b := connect(t, m, ServeOptions{Shared: &SharedContexts{}}), connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	grant := func(c *testConn, id int64, context, origin string) message {
		return c.call(id, "", "Browser.setPermission", fmt.Sprintf(`{"permission":{"name":"midi"},"setting":"granted","origin":%q,"browserContextId":%q}`, origin, context))
	}
	grant(b, 2, b.context(1), "https://b.example")
	ours := a.context(1)
	for i := range int64(2 * maxSharedGrants) {
		grant(a, 10+i, ours, fmt.Sprintf("https://a%d.example", i))
	}
	if got := m.Permissions.InForce(); len(got) != maxSharedGrants+1 || got[0].Origin != "https://b.example" {
		t.Errorf("%d are recorded, the first of %s", len(got), got[0].Origin)
	}
	if got := grant(a, 3, ours, "https://"+strings.Repeat("a", maxGrantBytes)); got.Error == nil {
		t.Error("a large permission is recorded")
	}
	// A permission waits until others have been set, and is dropped if its client leaves meanwhile.
	sent := len(f.wait(0, method("Browser.setPermission")))
	b.call(5, "", "Browser.getVersion", `{}`)
	rootOfB := f.wait(1, func(q message) bool { return q.Method == "Browser.getVersion" && q.Session != "" })[0].Session
	m.Permissions.Renew(t.Context(), func([]state.PermissionGrant) {
		b.ask(4, "Browser.setPermission", fmt.Sprintf(`{"permission":{"name":"midi"},"setting":"granted","origin":"https://late.example","browserContextId":%q}`, b.context(9)))
		m.mu.Lock()
		for c := range m.shared {
			if m.sessions.all[c.client.root].id == rootOfB {
				c.client.end(CloseNormal, "", nil, false)
			}
		}
		m.mu.Unlock()
		f.wait(1, method("Target.detachFromTarget"))
	})
	_ = b.gone(CloseNormal)
	if got := m.Permissions.InForce(); len(got) != maxSharedGrants || len(f.wait(0, method("Browser.setPermission"))) != sent {
		t.Errorf("%d are in force", len(got))
	}
}
