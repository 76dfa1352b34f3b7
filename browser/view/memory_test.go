package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/budget"
)

// offer sends a command n times, and returns how often it was read.
func offer(c *fakeConn, n int, command string) (read int) {
	for ; read < n; read++ {
		synctest.Wait()
		select {
		case c.commands <- command:
		default:
			return read
		}
	}
	return read
}

// While Chrome does not answer, commands of a viewer without control take no memory. Those of
// a viewer with control take a little, and then the daemon reads no more.
func TestMemoryOfCommands(t *testing.T) {
	text := `{"type":"text","text":"` + strings.Repeat("t", maxText) + `"}`
	for _, control := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, c := newBrowser("one"), newConn()
			b.hang = make(chan struct{})
			serve(t, b, c, control)
			read := offer(c, 100, text)
			synctest.Wait()
			held, _ := b.memory.Use()
			switch {
			case !control && (read != 100 || held != 0):
				t.Errorf("without control: %d commands were read, %d bytes are held", read, held)
			case control && (read == 0 || read > 3 || held == 0 || held > maxQueuedBytes):
				t.Errorf("with control: %d commands were read, %d bytes are held", read, held)
			}
		})
	}
}

// A viewer that does not read delays nobody and holds little memory: the pictures are
// acknowledged, and the newest state replaces older ones.
func TestViewerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one", "two"), newConn()
		c.unread = make(chan struct{})
		serve(t, b, c, true)
		const frame = `{"data":"AAAA","sessionId":1,"metadata":{"deviceWidth":1,"deviceHeight":1}}`
		for n := range 100 {
			b.mu.Lock()
			b.tabs[0].Title = fmt.Sprint(n)
			b.mu.Unlock()
			b.emit("", target.TargetInfoChanged.Method, "{}")
			b.emit("one-1", page.ScreencastFrame.Method, frame)
		}
		if n := b.count("one-1 Page.screencastFrameAck"); n < 99 {
			t.Errorf("%d of 100 pictures were acknowledged", n)
		}
		if held, _ := b.memory.Use(); held == 0 || held > 2000 {
			t.Errorf("%d bytes are held", held)
		}
		close(c.unread)
		synctest.Wait()
		if n := len(c.texts); n != 2 || !strings.Contains(c.texts[1], `"99"`) || c.bytes == 0 {
			t.Errorf("the viewer got %q and %d bytes of pictures", c.texts, c.bytes)
		}
	})
}

// If the daemon's memory for clients is full, the viewer that holds most is closed.
func TestViewerOverBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBrowser("one"), newConn()
		b.memory = budget.New(1 << 10)
		b.hang = make(chan struct{})
		serve(t, b, c, false)
		offer(c, 1, `{"type":"text","text":"`+strings.Repeat("t", 1<<10)+`"}`)
		synctest.Wait()
		if !slices.Equal(c.closed, []int{mux.CloseTooSlow}) {
			t.Errorf("closed with %v", c.closed)
		}
	})
}
