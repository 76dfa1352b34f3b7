package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
)

const answered = "one-1 Page.handleJavaScriptDialog true "

// dialogs returns the dialogs that the viewer was sent: "<number> <message>", or "none".
func (c *fakeConn) dialogs(t *testing.T) (all []string) {
	t.Helper()
	synctest.Wait()
	for _, text := range c.texts {
		var d Dialog
		if !strings.HasPrefix(text, `{"type":"dialog"`) {
			continue
		}
		unmarshal(t, text, &d)
		if d.Open {
			all = append(all, fmt.Sprint(d.Number, " ", d.Message))
		} else {
			all = append(all, "none")
		}
	}
	return all
}

// An answer reaches only the dialog that it is for, once.
func TestAnswerToADialog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		serve(t, b, c, true)
		answer := func(number int) {
			c.commands <- fmt.Sprintf(`{"type":"dialog","number":%d,"accept":true}`, number)
			synctest.Wait()
		}
		answer(0)
		b.emit("one-1", page.JavascriptDialogOpening.Method, `{"type":"confirm","message":"Leave?"}`)
		b.emit("one-1", page.JavascriptDialogClosed.Method, `{}`) // a client answered it
		b.emit("one-1", page.JavascriptDialogOpening.Method, `{"type":"confirm","message":"Pay?"}`)
		answer(1)
		if b.posted(answered) {
			t.Error("the answer to the first dialog reached the second")
		}
		answer(2)
		answer(2)
		if n := b.count(answered); n != 1 {
			t.Errorf("%d answers reached Chrome, want 1", n)
		}
		if got := c.dialogs(t); !slices.Equal(got, []string{"1 Leave?", "none", "2 Pay?"}) {
			t.Errorf("the viewer got %q", got)
		}
	})
}

// A dialog stays open while another tab is shown, and is shown again with its tab.
func TestDialogOfAnotherTab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one", "two"), newConn()
		serve(t, b, c, true)
		show := func(tab string) {
			c.commands <- `{"type":"tab","id":"` + tab + `"}`
			synctest.Wait()
		}
		b.emit("one-1", page.JavascriptDialogOpening.Method, `{"type":"alert","message":"Hello"}`)
		show("two")
		c.commands <- `{"type":"dialog","number":1,"accept":true}`
		synctest.Wait()
		if b.posted(answered) {
			t.Error("a dialog of a tab that is not shown was answered")
		}
		if !b.posted("one-1 Page.stopScreencast") || b.posted(" Target.detachFromTarget one-1") {
			t.Error("the session of the tab with the dialog was not kept, or its pictures go on")
		}
		show("one")
		if got := c.dialogs(t); !slices.Equal(got, []string{"1 Hello", "none", "1 Hello"}) || b.count("one-1 Page.startScreencast") != 2 {
			t.Errorf("the viewer got %q", got)
		}
		show("two")
		b.emit("one-1", page.JavascriptDialogClosed.Method, `{}`) // a client answered it
		if !b.posted(" Target.detachFromTarget one-1") {
			t.Error("the session was kept after its dialog was closed")
		}
		b.emit("two-3", page.JavascriptDialogOpening.Method, `{"type":"alert","message":"Bye"}`)
		b.mu.Lock()
		b.tabs = b.tabs[:1]
		b.mu.Unlock()
		b.emit("", target.DetachedFromTarget.Method, `{"sessionId":"two-3"}`) // the tab was closed
		if got := c.dialogs(t); !slices.Equal(got[3:], []string{"none", "2 Bye", "none"}) {
			t.Errorf("the viewer got %q", got)
		}
	})
}
