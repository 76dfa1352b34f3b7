package mux

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"
)

// A page that turns to a file loses its client at once: the client is told as Chrome
// tells it, what it waits for ends, and nothing of the page comes any more.
func TestTurnedForeign(t *testing.T) {
	for how, turn := range map[string]func(*fake){
		"by its address": func(f *fake) {
			f.emit("", "Target.targetInfoChanged", `{"targetInfo":{"targetId":"P","type":"page","url":"file:///etc/passwd"}}`)
		},
		"by a script's context": func(f *fake) {
			f.emit("S2", "Runtime.executionContextCreated", `{"context":{"id":1,"origin":"file://","name":""}}`)
		},
	} {
		t.Run(how, func(t *testing.T) {
			m, f := start(t, Options{}, func(_ *fake, q message) []byte {
				if q.Method == "Runtime.evaluate" {
					return []byte{} // it waits
				}
				return nil
			})
			f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"http://a/"}}`)
			<-m.Paged()
			turned := make(chan target.ID, 1)
			m.OnForeign(func(id target.ID) { turned <- id })
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
					t.Error("the client is told what the page says")
				case e.ID != nil && *e.ID == 2:
					failed = e.Error != nil
				case e.Method == "Target.detachedFromTarget":
					detached = strings.Contains(said, at.SessionID)
				}
				last = strings.Contains(said, "http://b/")
			}
			if !failed || !detached {
				t.Errorf("the call failed: %v, the client was told: %v", failed, detached)
			}
			if got := c.call(3, at.SessionID, "Page.enable", "{}"); got.Error == nil {
				t.Error("the session is still there")
			}
			if how == "by its address" {
				if id := <-turned; id != "P" {
					t.Errorf("told of %s", id)
				}
			}
		})
	}
}

// A client goes back to what it may open, and to nothing else.
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
		t.Error("it went to a file")
	}
	if got := c.call(2, "", "Page.navigateToHistoryEntry", `{"entryId":"5"}`); got.Error == nil {
		t.Error("it went to an entry that is no number")
	}
	if got := c.call(3, "", "Page.navigateToHistoryEntry", `{"entryId":6}`); got.Error != nil {
		t.Errorf("it did not go back: %+v", got.Error)
	}
	f.wait(1, method("Page.navigateToHistoryEntry"))
}

// An added script has its guard before its first statement, and its directive before
// that.
func TestGuardScript(t *testing.T) {
	guarded := guardScript(` 'use strict'; let a = 1`, []string{"own"})
	if !strings.HasPrefix(guarded, `"use strict";for(`) || !strings.HasSuffix(guarded, ` 'use strict'; let a = 1`) {
		t.Errorf("%s", guarded)
	}
	if strings.Contains(guarded, "parent") {
		t.Errorf("a function of the script's own could stand for parent: %s", guarded)
	}
	if guarded = guardScript("let a = 1\nlet b", nil); !strings.HasPrefix(guarded, "for(") || strings.Count(guarded, "\n") != 1 {
		t.Errorf("%s", guarded)
	}
}
