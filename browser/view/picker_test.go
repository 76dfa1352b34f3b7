package view

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// command sends a command of the viewer, and waits for what it leads to.
func (c *fakeConn) command(text string, wait time.Duration) {
	c.commands <- text
	synctest.Wait()
	time.Sleep(wait)
	synctest.Wait()
}

// got returns the last message of a type that the viewer got.
func (c *fakeConn) got(t *testing.T, kind string, into any) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.texts) - 1; i >= 0; i-- {
		var m struct{ Type string }
		if unmarshal(t, c.texts[i], &m); m.Type == kind {
			unmarshal(t, c.texts[i], into)
			return
		}
	}
	t.Fatalf("the viewer got no %s: %q", kind, c.texts)
}

// After a click, the viewer gets the list that Chrome shows outside the page. Its answer
// sets the field and closes Chrome's list. A late answer does not reach the next list.
func TestPicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		b.answer("look(0)", `{"id":1,"kind":"select","value":"0","options":[{"index":0,"label":"<red>"}]}`)
		c.command(`{"type":"mouse","event":"down","button":"left","x":5,"y":6}`, lookSoon)
		var p Picker
		c.got(t, "picker", &p)
		if !p.Open || p.Number != 1 || p.Kind != "select" || len(p.Options) != 1 || p.Options[0].Label != "<red>" || p.X != 5 || p.Y != 6 {
			t.Errorf("%+v", p)
		}
		b.answer("look(1)", `{"id":1}`) // it is still open
		time.Sleep(lookFor)
		if c.got(t, "picker", &p); !p.Open || p.Number != 1 {
			t.Errorf("later: %+v", p)
		}
		b.answer("look(0)", "")
		b.answer("look(1)", "")
		time.Sleep(lookFor)
		if c.got(t, "picker", &p); p.Open {
			t.Errorf("after Chrome has closed it: %+v", p)
		}
		b.answer("look(0)", `{"id":2,"kind":"date"}`)
		c.command(`{"type":"key","event":"down","key":" "}`, lookSoon)
		c.command(`{"type":"pick","number":1,"accept":true,"text":"late"}`, 0)
		c.command(`{"type":"pick","number":2,"accept":true,"text":"2026-01-02\"<"}`, 0)
		set, escape := "one-1 "+runtime.Evaluate.Method+` choose(2, "2026-01-02\"\u003c")`, "call Escape"
		if !b.posted(set) || b.count(escape) != 1 {
			t.Errorf("%q", b.posts)
		}
		b.answer("look(0)", `{"id":3,"kind":"color"}`)
		c.command(`{"type":"mouse","event":"down","button":"left"}`, lookSoon)
		c.command(`{"type":"pick","number":3,"accept":false}`, 0)
		if b.count(escape) != 2 || b.posted("one-1 "+runtime.Evaluate.Method+` choose(3, "")`) {
			t.Errorf("cancelled: %q", b.posts)
		}
	})
}

// A page that is too busy to answer keeps its picker and its on-screen keyboard. It is asked until
// it answers, however long that takes.
func TestPickerOfBusyPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		const click = `{"type":"mouse","event":"down","button":"left"}`
		var state State
		b.answer("look(0)", `{"typing":true}`)
		c.command(click, lookSoon)
		if c.got(t, "state", &state); !state.Typing {
			t.Error("the field is not seen")
		}
		b.asleep = make(chan struct{})
		b.answer("look(0)", `{"id":1,"kind":"date"}`)
		b.answer("look(1)", `{"id":1}`)
		c.command(click, 5*askDeadline)
		if c.got(t, "state", &state); !state.Typing {
			t.Error("the on-screen keyboard closes while the page is busy")
		}
		close(b.asleep)
		time.Sleep(tick)
		synctest.Wait()
		var p Picker
		if c.got(t, "picker", &p); !p.Open {
			t.Error("the picker is not seen once the page answers")
		}
		b.asleep = make(chan struct{})
		c.command(click, 5*askDeadline)
		if c.got(t, "picker", &p); !p.Open {
			t.Error("the picker closes while the page is busy")
		}
		b.answer("look(1)", "null")
		close(b.asleep)
		time.Sleep(tick)
		synctest.Wait()
		if c.got(t, "picker", &p); p.Open {
			t.Error("the picker is open after Chrome has closed it")
		}
	})
}

// A viewer without control is asked nothing, and the frames of its tab neither.
func TestPickerWithoutControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, false)
		b.answer("look(0)", `{"id":1,"kind":"date"}`)
		c.command(`{"type":"mouse","event":"down","button":"left"}`, lookFor)
		if b.posted("one-1 " + page.Enable.Method) {
			t.Error("the Page domain is enabled")
		}
		for _, text := range c.texts {
			var m struct{ Type string }
			if unmarshal(t, text, &m); m.Type != "state" {
				t.Errorf("the viewer got %s", text)
			}
		}
	})
}

// A page that asks for files gets files of the session. A CDP client that intercepts file
// choosers comes first.
func TestChooser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		if !b.posted("one-1 " + page.SetInterceptFileChooserDialog.Method) {
			t.Errorf("the tab is not prepared: %q", b.posts)
		}
		b.emit("one-1", page.FileChooserOpened.Method, `{"frameId":"f","mode":"selectSingle","backendNodeId":9}`)
		var asks Chooser
		if c.got(t, "chooser", &asks); !asks.Open || asks.Multiple || asks.Number != 1 {
			t.Errorf("%+v", asks)
		}
		c.command(`{"type":"files","number":2,"accept":true,"names":["wrong"]}`, 0)
		c.command(`{"type":"files","number":1,"accept":true,"names":["a.txt","b.txt"]}`, 0)
		c.command(`{"type":"files","number":1,"accept":true,"names":["again"]}`, 0)
		if b.count("one-1 "+dom.SetFileInputFiles.Method+" 9 /files/a.txt") != 1 || len(b.given()) != 1 {
			t.Errorf("%q", b.given())
		}
		b.emit("one-1", page.FileChooserOpened.Method, `{"frameId":"f","mode":"selectMultiple","backendNodeId":8}`)
		c.command(`{"type":"files","number":2,"accept":true,"names":["a.txt","gone"]}`, 0)
		var n Notice
		if c.got(t, "notice", &n); n.Text != "The file gone is not among the session's files any more." || len(b.given()) != 1 {
			t.Errorf("%q, %q", n.Text, b.given())
		}
		b.client = true
		b.emit("one-1", page.FileChooserOpened.Method, `{"frameId":"f","mode":"selectMultiple","backendNodeId":8}`)
		if c.got(t, "chooser", &asks); asks.Number > 2 {
			t.Errorf("a client chooses, but the viewer got %+v", asks)
		}
	})
}

// Files do not reach the next document of the frame that asked for them.
func TestChooserOfAnotherDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		b.emit("one-1", page.FileChooserOpened.Method, `{"frameId":"f","mode":"selectSingle","backendNodeId":9}`)
		b.emit("one-1", page.FrameNavigated.Method, `{"frame":{"id":"another"}}`)
		var asks Chooser
		if c.got(t, "chooser", &asks); !asks.Open {
			t.Error("the chooser is closed")
		}
		b.emit("one-1", page.FrameNavigated.Method, `{"frame":{"id":"f","url":"https://evil.example/"}}`)
		if c.got(t, "chooser", &asks); asks.Open {
			t.Error("the chooser is open")
		}
		c.command(`{"type":"files","number":1,"accept":true,"names":["a.txt"]}`, 0)
		if len(b.given()) != 0 {
			t.Errorf("%q", b.given())
		}
	})
}

// What is selected is read before the keys of the command are pressed, and goes to the
// viewer.
func TestCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		b.answer("selected()", `{"text":"some","left":3}`)
		c.command(`{"type":"edit","event":"cut"}`, 0)
		var copied Copied
		if c.got(t, "copied", &copied); copied.Text != "some" || copied.Left != 3 {
			t.Errorf("%+v", copied)
		}
		c.command(`{"type":"edit","event":"select_all"}`, 0)
		if b.count("one-1 "+input.DispatchKeyEvent.Method+" x") != 2 || b.count("one-1 "+input.DispatchKeyEvent.Method+" a") != 2 {
			t.Errorf("%q", b.posts)
		}
	})
}

// What the person does after a copy does not change what is copied, and waits for it only for
// a while. The page gets both ends of each key.
func TestCopyIsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		b.asleep = make(chan struct{})
		for _, command := range []string{`{"type":"edit","event":"cut"}`, `{"type":"text","text":"after it"}`, `{"type":"edit","event":"copy"}`} {
			c.command(command, 0)
		}
		key, text := "one-1 "+input.DispatchKeyEvent.Method+" ", "one-1 "+input.InsertText.Method
		keys := func() (keys []string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, p := range b.posts {
				if strings.HasPrefix(p, key) || p == text || p == "call Control" {
					keys = append(keys, p)
				}
			}
			return keys
		}
		if got, want := keys(), []string{"call Control"}; !slices.Equal(got, want) {
			t.Errorf("while the page is asked: %q", got)
		}
		time.Sleep(holdDeadline)
		synctest.Wait()
		cut := []string{"call Control", key + "x", key + "x", key + "Control", text, "call Control"}
		if got := keys(); !slices.Equal(got, cut) {
			t.Errorf("after the deadline: %q", got)
		}
		close(b.asleep)
		synctest.Wait()
		if got := keys(); !slices.Equal(got, append(cut, key+"c", key+"c", key+"Control")) {
			t.Errorf("after an answer: %q", got)
		}
		b.asleep = make(chan struct{})
		c.command(`{"type":"edit","event":"copy"}`, 0)
		b.emit("one-1", page.JavascriptDialogOpening.Method, `{"type":"alert"}`)
		c.command(`{"type":"dialog","number":1,"accept":true}`, 0)
		if !b.posted("one-1 " + page.HandleJavaScriptDialog.Method + " true ") {
			t.Errorf("a dialog that opens during a copy is not answered: %q", b.posts)
		}
		b.emit("one-1", page.JavascriptDialogClosed.Method, `{}`)
		b.emit("one-1", page.JavascriptDialogOpening.Method, `{"type":"alert"}`)
		c.command(`{"type":"edit","event":"copy"}`, 0)
		if n := b.count("call Control"); n != 3 {
			t.Errorf("beside a dialog: %d", n)
		}
	})
}

// The viewer learns of a complete download once its file is there.
func TestDownloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		b.emit("one-1", downloadProgress, `{"guid":"g","state":"inProgress"}`)
		if n := len(c.texts); n != 1 {
			t.Errorf("%q", c.texts)
		}
		b.emit("one-1", downloadProgress, `{"guid":"g","state":"completed"}`)
		c.got(t, "files", &FilesChanged{})
	})
}

// The tab may go before the viewer has learnt of it. The viewer stays connected.
func TestTabHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one", "two"), newConn()
		serve(t, b, c, true)
		b.gone = "one-1"
		c.command(`{"type":"text","text":"lost"}`, 0)
		b.emit("", target.DetachedFromTarget.Method, `{"sessionId":"one-1"}`)
		c.command(`{"type":"text","text":"still here"}`, 0)
		if !b.posted("one-2 " + input.InsertText.Method) {
			t.Errorf("%q", b.posts)
		}
	})
}

// Nothing is read from a tab that has gone to an address which a session may not show.
func TestPickerAtHiddenAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		b.answer("look(0)", `{"id":1,"kind":"date"}`)
		c.command(`{"type":"mouse","event":"down","button":"left"}`, 0)
		b.hidden.Store(true)
		time.Sleep(lookFor)
		synctest.Wait()
		for _, text := range c.texts {
			if strings.Contains(text, `"picker"`) {
				t.Error(text)
			}
		}
	})
}
