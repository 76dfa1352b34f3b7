package view

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
)

// Copied is the text that was selected when the viewer copied it.
type Copied struct {
	Type string `json:"type"` // copied
	Text string `json:"text"`
	Left int    `json:"left"` // characters that are missing at the end of a long text
}

// edit carries out an editing command. To copy, it reads the selected text first.
func (s *server) edit(ctx context.Context, event string) error {
	c := s.shown
	if event == "select_all" {
		return s.pressEdit(ctx, c, event)
	}
	sessions := c.sessions()
	s.work.Go(func() {
		s.pressControl(ctx, c)
		copied := Copied{Type: "copied"}
		askFrames(ctx, s.browser, sessions, "selected()", func(_ world, answer []byte) bool {
			var text *Copied
			if json.Unmarshal(answer, &text) != nil || text == nil {
				return false
			}
			copied.Text, copied.Left = text.Text, text.Left
			return true
		})
		if s.pressEdit(ctx, c, event) == nil {
			s.deliver(ctx, reply{cast: c, copied: &copied})
		}
	})
	return nil
}

// pressControl presses the control key, and waits until the page has had it. So it has also
// had the input of before, such as a selection.
func (s *server) pressControl(ctx context.Context, c *screencast) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	// A page with an open dialog does not answer, and then nothing can be copied either.
	_, _ = cdp.Call(ctx, s.browser.Session(c.id), input.DispatchKeyEvent, input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeRawKeyDown, Modifiers: 2, Key: "Control", Code: "ControlLeft", WindowsVirtualKeyCode: 17})
}

// pressEdit presses the keys of an editing command, on which the page may act too. Chrome
// carries the command out also where other keys stand for it.
func (s *server) pressEdit(ctx context.Context, c *screencast, event string) error {
	name := editing(event)
	key := map[string]string{"copy": "c", "cut": "x", "selectAll": "a"}[name]
	p := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Modifiers: 2, Key: key, Code: "Key" + strings.ToUpper(key),
		WindowsVirtualKeyCode: int64(strings.ToUpper(key)[0]), Commands: []string{name}}
	if err := s.browser.Post(ctx, c.id, input.DispatchKeyEvent.Method, p); err != nil {
		return err
	}
	p.Type, p.Commands = input.DispatchKeyEventTypeKeyUp, nil
	return s.browser.Post(ctx, c.id, input.DispatchKeyEvent.Method, p)
}

// editing returns Blink's name of an editing command, or "".
func editing(event string) string {
	return map[string]string{"copy": "copy", "cut": "cut", "select_all": "selectAll"}[event]
}
