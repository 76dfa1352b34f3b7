package view

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
)

// Picker is the list of a select, or a picker, that Chrome shows for the tab. The viewer's
// page draws its own. Without Open, Chrome shows none. The texts come from the page.
type Picker struct {
	Type    string   `json:"type"` // picker
	Open    bool     `json:"open"`
	Number  int64    `json:"number"` // of this picker alone; an answer repeats it
	Kind    string   `json:"kind"`   // select, or the type of the input: date, time, month, week, datetime-local, color
	Label   string   `json:"label"`
	Value   string   `json:"value"` // of the input, or the index of the chosen option
	Min     string   `json:"min"`
	Max     string   `json:"max"`
	Step    string   `json:"step"`
	Options []Option `json:"options,omitempty"`
	Left    int      `json:"left"` // how many options are missing at the end of a long list
	// X and Y are where the viewer clicked last, in CSS pixels of the tab.
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Option is one option of a select.
type Option struct {
	Index    int    `json:"index"`
	Label    string `json:"label"`
	Group    string `json:"group"`
	Disabled bool   `json:"disabled"`
}

// picker is a Picker with its place in the tab.
type picker struct {
	Picker
	ID      int64 // that worldScript gave it
	context runtime.ExecutionContextID
}

// pickerFound records the picker that Chrome shows for a tab, or nil.
func (s *server) pickerFound(c *screencast, p *picker) error {
	switch {
	case p == nil:
		c.picker = nil
	case p.Kind == "": // the one that was known when the look began
		if c.picker != nil && (c.picker.ID != p.ID || c.picker.context != p.context) {
			c.picker = nil
		}
	default:
		p.Type, p.Open, p.Number, p.X, p.Y = "picker", true, s.newQuestion(pickerMessage), c.x, c.y
		c.picker = p
	}
	return s.showQuestions()
}

// pick closes Chrome's picker, and sets its field if the viewer has chosen. An answer to
// another picker than the open one is ignored.
func (s *server) pick(ctx context.Context, c Command) error {
	cast, p := s.shown, s.shown.picker
	if p == nil || p.Number != c.Number {
		return nil
	}
	value, err := json.Marshal(c.Text)
	if err != nil {
		return err
	}
	cast.picker, s.asked[pickerMessage] = nil, 0
	choose := func() error {
		if !c.Accept {
			return nil
		}
		// Not awaited: the page may open a dialog when the field changes.
		yes := true
		return s.browser.Post(ctx, cast.id, runtime.Evaluate.Method, runtime.EvaluateParams{
			Expression: callWorld(fmt.Sprintf("choose(%d, %s)", p.ID, value)), ContextID: p.context, UserGesture: &yes})
	}
	// The key goes to the picker and not to the page. Without its release, the page sees nothing of it.
	escape := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "Escape", Code: "Escape", WindowsVirtualKeyCode: 27}
	if cast.dialog != nil { // the page does not answer, and the picker closes later
		if err := s.press(ctx, cast, escape); err != nil {
			return err
		}
		return choose()
	}
	// Later commands wait, because an open picker would take the next click.
	s.hold(ctx, func(short context.Context) reply {
		_, _ = cdp.Call(short, s.browser.Session(cast.id), input.DispatchKeyEvent, escape)
		_ = choose() // the tab may have been closed
		return reply{cast: cast}
	})
	return nil
}
