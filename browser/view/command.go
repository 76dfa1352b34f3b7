package view

import (
	"errors"
	"math"
	"slices"
	"unicode/utf8"
)

// Command is what a viewer's page asks for. Type says which of the other fields count:
//
//   - drawn: Frame was drawn.
//   - mouse: Event is down, up or move at X and Y, in CSS pixels of the shown tab; Button is
//     left, middle or right, Buttons the pressed ones as in MouseEvent.buttons, Clicks as in
//     MouseEvent.detail.
//   - wheel: the wheel turned by DX and DY pixels at X and Y.
//   - key: Event is down or up; Key, Code, KeyCode, Location and Repeat as in
//     KeyboardEvent; Text is what the key types, if anything.
//   - text: Text was typed by a composition, an emoji picker or a paste.
//   - dialog answers the open dialog: Accept, and Text for a prompt.
//   - navigate to URL; back, forward, reload.
//   - tab shows the tab with ID; new_tab opens one; close_tab closes that with ID.
//
// Modifiers is as in CDP's Input domain: 1 Alt, 2 Ctrl, 4 Meta, 8 Shift.
type Command struct {
	Type      string  `json:"type"`
	Event     string  `json:"event"`
	Frame     int64   `json:"frame"`
	X         float64 `json:"x"`
	Y         float64 `json:"y"`
	DX        float64 `json:"dx"`
	DY        float64 `json:"dy"`
	Button    string  `json:"button"`
	Buttons   int64   `json:"buttons"`
	Clicks    int64   `json:"clicks"`
	Modifiers int64   `json:"modifiers"`
	Key       string  `json:"key"`
	Code      string  `json:"code"`
	KeyCode   int64   `json:"key_code"`
	Location  int64   `json:"location"`
	Repeat    bool    `json:"repeat"`
	Text      string  `json:"text"`
	Accept    bool    `json:"accept"`
	URL       string  `json:"url"`
	ID        string  `json:"id"`
}

const (
	maxText   = 1 << 20 // bytes of one paste
	maxPixels = 1 << 16
)

var errCommand = errors.New("not a command of a viewer")

// check returns an error for a command that the page never sends.
func (c Command) check() error {
	for _, n := range []float64{c.X, c.Y, c.DX, c.DY} {
		if math.IsNaN(n) || math.Abs(n) > maxPixels {
			return errCommand
		}
	}
	switch {
	case len(c.Text) > maxText, !utf8.ValidString(c.Text), len(c.Key) > maxName, len(c.Code) > maxName:
		return errCommand
	case c.Type == "mouse" && (!slices.Contains([]string{"down", "up", "move"}, c.Event) || !slices.Contains([]string{"", "left", "middle", "right", "back", "forward"}, c.Button)),
		c.Type == "key" && !slices.Contains([]string{"down", "up"}, c.Event):
		return errCommand
	case !slices.Contains([]string{"drawn", "mouse", "wheel", "key", "text", "dialog", "navigate", "back", "forward", "reload", "tab", "new_tab", "close_tab"}, c.Type):
		return errCommand
	}
	return nil
}

// givesInput reports whether the person waits for the page's reaction. Moving the mouse does
// not count, so that it leaves the pictures sharp.
func (c Command) givesInput() bool {
	switch c.Type {
	case "mouse":
		return c.Event != "move" || c.Buttons != 0
	case "wheel", "key", "text":
		return true
	}
	return false
}

// maxName bounds the name of a key, in bytes.
const maxName = 64
