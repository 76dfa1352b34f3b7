package view

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
)

// Copied is the text that was selected when the viewer copied it.
type Copied struct {
	Type string `json:"type"` // copied
	Text string `json:"text"`
	Left int    `json:"left"` // characters that are missing at the end of a long text
}

// holdDeadline bounds how long the viewer's commands wait for the page. Until then the person can
// do nothing, and sees no new picture.
const holdDeadline = 3 * time.Second

// hold does something with the shown tab in the background. The viewer's later commands wait for it.
// Its context ends at holdDeadline. It also ends when the tab opens a dialog: then the page answers
// nothing, and the person must be able to answer the dialog.
func (s *server) hold(ctx context.Context, do func(short context.Context) reply) {
	short, cancel := context.WithTimeout(ctx, holdDeadline)
	s.holding, s.held = cancel, s.shown
	s.work.Go(func() {
		r := do(short)
		r.held = true
		s.deliver(ctx, r)
	})
}

// edit carries out an editing command. To copy, it reads the selected text first. The viewer's
// later commands wait for that, because they could change what is selected. So at most one text is
// read at a time.
func (s *server) edit(ctx context.Context, event string) error {
	c := s.shown
	if event == "select_all" {
		return s.pressEdit(ctx, c, event)
	}
	if c.dialog != nil {
		return nil // the page answers nothing, and the person must be able to answer the dialog
	}
	s.hold(ctx, func(short context.Context) reply {
		copied := s.selected(short, c)
		// The tab may have been closed. The text that was read is still of use then.
		_ = s.pressEdit(ctx, c, event)
		_ = s.press(ctx, c, controlKey(input.DispatchKeyEventTypeKeyUp))
		return reply{cast: c, copied: &copied}
	})
	return nil
}

// selected returns the text that is selected in the tab.
func (s *server) selected(ctx context.Context, c *screencast) Copied {
	// Once the page has had the control key, it has also had the input of before, such as a
	// selection. A page that does not answer has nothing to copy either.
	tab := s.browser.Session(c.id)
	_, _ = cdp.Call(ctx, tab, input.DispatchKeyEvent, controlKey(input.DispatchKeyEventTypeRawKeyDown))
	copied := Copied{Type: "copied"}
	askFrames(ctx, tab, "selected()", func(_ runtime.ExecutionContextID, answer []byte) bool {
		var text *Copied
		if json.Unmarshal(answer, &text) != nil || text == nil {
			return false
		}
		copied.Text, copied.Left = text.Text, text.Left
		return true
	})
	return copied
}

// controlKey presses or releases the control key.
func controlKey(event input.DispatchKeyEventType) input.DispatchKeyEventParams {
	p := input.DispatchKeyEventParams{Type: event, Key: "Control", Code: "ControlLeft", WindowsVirtualKeyCode: 17}
	if event == input.DispatchKeyEventTypeRawKeyDown {
		p.Modifiers = 2
	}
	return p
}

// pressEdit presses the keys of an editing command, on which the page may act too. Chrome
// carries the command out also where other keys stand for it.
func (s *server) pressEdit(ctx context.Context, c *screencast, event string) error {
	name := editing(event)
	key := map[string]string{"copy": "c", "cut": "x", "selectAll": "a"}[name]
	p := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Modifiers: 2, Key: key, Code: "Key" + strings.ToUpper(key),
		WindowsVirtualKeyCode: int64(strings.ToUpper(key)[0]), Commands: []string{name}}
	if err := s.press(ctx, c, p); err != nil {
		return err
	}
	p.Type, p.Commands = input.DispatchKeyEventTypeKeyUp, nil
	return s.press(ctx, c, p)
}

func (s *server) press(ctx context.Context, c *screencast, p input.DispatchKeyEventParams) error {
	return s.browser.Post(ctx, c.id, input.DispatchKeyEvent.Method, p)
}

// editing returns Blink's name of an editing command, or "".
func editing(event string) string {
	return map[string]string{"copy": "copy", "cut": "cut", "select_all": "selectAll"}[event]
}
