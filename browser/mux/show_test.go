package mux

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/fault"
)

// A page that navigates to a file or to developer tools loses its client at once. The
// client gets the events that Chrome would send, its pending calls fail, and it gets
// nothing more of the page.
func TestForeignPageLosesClients(t *testing.T) {
	for how, turn := range map[string]func(*fake){
		"by its address": func(f *fake) {
			f.emit("", "Target.targetInfoChanged", `{"targetInfo":{"targetId":"P","type":"page","url":"file:///etc/passwd"}}`)
		},
		"to developer tools": func(f *fake) {
			f.emit("", "Target.targetInfoChanged", `{"targetInfo":{"targetId":"P","type":"page","url":"devtools://devtools/bundled/devtools_app.html"}}`)
		},
		"by a script's context": func(f *fake) {
			f.emit("S2", "Runtime.executionContextCreated", `{"context":{"id":1,"origin":"file://","name":""}}`)
		},
	} {
		t.Run(how, func(t *testing.T) {
			m, f := start(t, Options{}, func(_ *fake, q message) []byte {
				if q.Method == "Runtime.evaluate" {
					return []byte{} // stays pending
				}
				return nil
			})
			f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"http://a/"}}`)
			<-m.FirstPage()
			foreign := make(chan target.ID, 1)
			m.Hooks.OnForeign(func(id target.ID) { foreign <- id })
			c := connect(t, m, ServeOptions{})
			var at struct{ SessionID string }
			c.result(1, "", "Target.attachToTarget", `{"targetId":"P","flatten":true}`, &at)
			c.send(`{"id":2,"method":"Runtime.evaluate","params":{"expression":"x"},"sessionId":"` + at.SessionID + `"}`)
			f.wait(1, method("Runtime.evaluate"))
			turn(f)
			f.emit("S2", "Runtime.consoleAPICalled", `{"type":"log","args":[{"value":"root:x:0:0"}]}`)
			f.emit("S1", "Target.targetCreated", `{"targetInfo":{"targetId":"Q","type":"page","url":"http://b/"}}`) // the last
			var failed, detached bool
			for last := false; !last; {
				e := c.recv()
				said := string(e.Params) + string(e.Result)
				switch {
				case strings.Contains(said, "root:"):
					t.Error("the client got an event of the page")
				case e.ID != nil && *e.ID == 2:
					failed = e.Error != nil
				case e.Method == "Target.detachedFromTarget":
					detached = strings.Contains(said, at.SessionID)
				}
				last = strings.Contains(said, "http://b/")
			}
			if !failed || !detached {
				t.Errorf("the call failed: %v; the client got the detach event: %v", failed, detached)
			}
			if got := c.call(3, at.SessionID, "Page.enable", "{}"); got.Error == nil {
				t.Error("the session still exists")
			}
			select {
			case id := <-foreign:
				if id != "P" {
					t.Errorf("got an event of %s", id)
				}
			default:
				if how != "by a script's context" {
					t.Error("OnForeign was not called for the page")
				}
			}
		})
	}
}

// Clients cannot see a page that is being sent away until it has settled. Chrome reports
// the next address while the previous document still exists.
func TestRedirectedPageIsHidden(t *testing.T) {
	m, f := start(t, Options{}, nil)
	var turns atomic.Int32
	m.Hooks.OnForeign(func(target.ID) { turns.Add(1) })
	c := connect(t, m, ServeOptions{})
	shows := func(url string) { // returns after the mux has read it
		f.emit("", "Target.targetInfoChanged", `{"targetInfo":{"targetId":"P","type":"page","url":"`+url+`"}}`)
		c.call(9, "", "Target.getBrowserContexts", `{}`)
	}
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"http://a/"}}`)
	shows("chrome://settings/")
	shows("chrome://settings/")
	if c.call(1, "", "Target.attachToTarget", `{"targetId":"P","flatten":true}`).Error == nil {
		t.Error("a client attached to a page of Chrome")
	}
	if err := connect(t, m, ServeOptions{Target: "P"}).gone(CloseBrowserGone); !fault.Is(err, fault.NotFound) {
		t.Errorf("Serve for the page: %v", err)
	}
	if m.RevealIfAllowed("P") {
		t.Error("the page settled at chrome://settings")
	}
	shows("about:blank")
	if c.call(2, "", "Target.attachToTarget", `{"targetId":"P","flatten":true}`).Error == nil || m.Allowed("P") || len(m.Pages()) > 0 {
		t.Error("the page is visible before it has settled")
	}
	if !m.RevealIfAllowed("P") || !m.Allowed("P") || len(m.Pages()) != 1 {
		t.Error("the page did not settle at about:blank")
	}
	if got := c.call(3, "", "Target.attachToTarget", `{"targetId":"P","flatten":true}`); got.Error != nil {
		t.Errorf("%+v", got.Error)
	}
	shows("file:///")
	if got := turns.Load(); got != 2 {
		t.Errorf("OnForeign was called %d times for two navigations", got)
	}
}

// Chrome's own interface, and pages in a hidden context, are not sent away.
func TestInternalPagesAreNotRedirected(t *testing.T) {
	m, f := start(t, Options{}, nil)
	m.Hooks.OnForeign(func(id target.ID) { t.Errorf("OnForeign was called for %s", id) })
	m.HideContext("H")
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"U","type":"browser_ui","url":"chrome://omnibox-popup.top-chrome/"}}`)
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"chrome://version/","browserContextId":"H"}}`)
	connect(t, m, ServeOptions{}).call(1, "", "Target.getBrowserContexts", `{}`) // the mux has read both
}

// A client that requested a page before it navigated away does not get it afterwards.
func TestAttachAfterForeignNavigation(t *testing.T) {
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method == "Target.attachToTarget" {
			f.emit("", "Target.targetInfoChanged", `{"targetInfo":{"targetId":"P","type":"page","url":"file:///"}}`)
		}
		return nil
	})
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"http://a/"}}`)
	<-m.FirstPage()
	if got := connect(t, m, ServeOptions{}).call(1, "", "Target.attachToTarget", `{"targetId":"P","flatten":true}`); got.Error == nil {
		t.Errorf("the client got %s", got.Result)
	}
}

// A paused request for a file or a page of Chrome ends the client's session: the client
// could read or make the answer. Other requests stay paused.
func TestPausedRequest(t *testing.T) {
	for url, cut := range map[string]bool{
		"file:///etc/passwd": true, "chrome://extensions/": true, "http://b/": false,
		"chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html": false,
	} {
		m, f := start(t, Options{}, nil)
		f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"http://a/"}}`)
		<-m.FirstPage()
		c := connect(t, m, ServeOptions{})
		var at struct{ SessionID string }
		c.result(1, "", "Target.attachToTarget", `{"targetId":"P","flatten":true}`, &at)
		f.emit(at.SessionID, "Fetch.requestPaused", `{"requestId":"1","request":{"url":"`+url+`"},"frameId":"F","resourceType":"Document"}`)
		if e := c.recv(); (e.Method == "Target.detachedFromTarget") != cut || (e.Method == "Fetch.requestPaused") == cut {
			t.Errorf("%s: %s", url, e.Method)
		}
	}
}

// Scripts that Chrome runs later get the guard, whichever command adds them.
func TestLaterScriptsAreGuarded(t *testing.T) {
	m, f := start(t, Options{}, nil)
	c := connect(t, m, ServeOptions{})
	for i, command := range []string{"Page.addScriptToEvaluateOnNewDocument source", "Page.addScriptToEvaluateOnLoad scriptSource",
		"Page.reload scriptToEvaluateOnLoad", "Debugger.setBreakpoint condition", "Debugger.setBreakpointByUrl condition",
		"Debugger.setBreakpointOnFunctionCall condition"} {
		name, member, _ := strings.Cut(command, " ")
		if got := c.call(int64(2*i), "", name, `{"`+member+`":"report()"}`); got.Error != nil {
			t.Errorf("%s: %+v", name, got.Error)
		}
		script := f.wait(1, method(name))[0].param(member)
		if !strings.HasPrefix(script, "for(") || !strings.HasSuffix(script, "report()") {
			t.Errorf("%s: %s", name, script)
		}
		if got := c.call(int64(2*i+1), "", name, `{"`+member+`":1}`); got.Error == nil {
			t.Errorf("%s accepts a number", name)
		}
	}
}

// A client can go back to addresses that it may open, and to no others.
func TestBackList(t *testing.T) {
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method == "Page.getNavigationHistory" {
			f.answer(q, `{"currentIndex":1,"entries":[{"id":5,"url":"file:///etc/passwd"},{"id":6,"url":"http://a/"}]}`)
			return []byte{}
		}
		return nil
	})
	c := connect(t, m, ServeOptions{})
	if got := c.call(1, "", "Page.navigateToHistoryEntry", `{"entryId":5}`); got.Error == nil {
		t.Error("the client went back to a file")
	}
	if got := c.call(2, "", "Page.navigateToHistoryEntry", `{"entryId":"5"}`); got.Error == nil {
		t.Error("the client went to an entry whose ID is not a number")
	}
	if got := c.call(3, "", "Page.navigateToHistoryEntry", `{"entryId":6}`); got.Error != nil {
		t.Errorf("the client could not go back: %+v", got.Error)
	}
	f.wait(1, method("Page.navigateToHistoryEntry"))
}

// A script is strict after its guard if it was strict before, and only then.
func TestGuardStrict(t *testing.T) {
	for source, strict := range map[string]bool{
		`"use strict"; f()`: true,
		"'use strict'\nf()": true,
		`"use strict"`:      true,
		"// by hand\n/* two\n * lines */ \"use strict\";f()":        true,
		"// eslint-disable\r\n\ufeff'use strict' // from here\nf()": true,
		`"use asm"; 'it\'s "old"' /* */; "use strict"; f()`:         true,
		"/*! banner */\n\"use asm\"\n\"use strict\"\n":              true,
		`f(); "use strict"`:             false,
		`/* "use strict"; */ f()`:       false,
		`/* */ f() /* */; "use strict"`: false,
		`// "use strict"`:               false,
		`"use strict".length`:           false,
		`"use strict" + f()`:            false,
		`"use strictly"; f()`:           false,
		`("use strict"); f()`:           false,
		`function f() { "use strict" }`: false,
		``:                              false,
	} {
		if got := strings.HasPrefix(guardScript(source, nil), `"use strict";for(`); got != strict {
			t.Errorf("%q: strict is %v", source, got)
		}
	}
}

// An added script has its guard before its first statement, and its directive before the
// guard.
func TestGuardScript(t *testing.T) {
	guarded := guardScript(` 'use strict'; let a = 1`, []string{"own"})
	if !strings.HasPrefix(guarded, `"use strict";for(`) || !strings.HasSuffix(guarded, ` 'use strict'; let a = 1`) {
		t.Errorf("%s", guarded)
	}
	if strings.Contains(guarded, "parent") {
		t.Errorf("a function of the script could replace parent: %s", guarded)
	}
	for _, strict := range []string{"// why\n'use strict'", `/* "a" */ /* b */"use strict"`} {
		if guarded = guardScript(strict, nil); !strings.HasPrefix(guarded, `"use strict";for(`) {
			t.Errorf("%s", guarded)
		}
	}
	if guarded = guardScript("else{}", nil); strings.Contains(guarded, ";else") || !strings.HasSuffix(guarded, "}else{}") {
		t.Errorf("the script became a branch of its guard: %s", guarded)
	}
	if guarded = guardScript("let a = 1\nlet b", nil); !strings.HasPrefix(guarded, "for(") || strings.Count(guarded, "\n") != 1 {
		t.Errorf("%s", guarded)
	}
}
