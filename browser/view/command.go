package view

import (
	"encoding/json"
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
//   - compose: Text is what a composition shows so far. A text ends the composition.
//   - text: Text was typed by a composition, an emoji picker or a paste.
//   - dialog answers the dialog with Number: Accept, and Text for a prompt.
//   - pick answers the picker with Number: Accept, and Text is the value or the index of the
//     option.
//   - files answers the file chooser with Number: Accept, and Names of the session's files.
//   - edit: Event is copy, cut or select_all.
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
	Number    int64   `json:"number"`
	Accept    bool    `json:"accept"`
	URL       string  `json:"url"`
	ID        string  `json:"id"`

	Names []string `json:"names"`
}

// The limits of a command. Those of strings are in bytes.
const (
	maxText   = 1 << 20 // a paste, or the answer to a prompt
	maxURL    = 32 << 10
	maxName   = 64 // the name of a key, the text that it types, the ID of a tab
	maxPixels = 1 << 16
	maxFile   = 255 // the name of a file
)

var errCommand = errors.New("not a command of a viewer")

// decode returns the command of a message. The error is errCommand for a message that the
// page never sends.
func decode(msg []byte) (Command, error) {
	var c Command
	if json.Unmarshal(msg, &c) != nil || c.check() != nil {
		return Command{}, errCommand
	}
	return c, nil
}

// needsControl reports whether only a viewer with control may give the command.
func (c Command) needsControl() bool { return c.Type != "drawn" }

// check returns an error for a command that the page never sends.
func (c Command) check() error {
	for _, n := range []float64{c.X, c.Y, c.DX, c.DY} {
		if math.IsNaN(n) || math.Abs(n) > maxPixels {
			return errCommand
		}
	}
	if len(c.Names) > maxFiles || slices.ContainsFunc(c.Names, func(n string) bool { return len(n) > maxFile }) {
		return errCommand
	}
	longest := maxName
	if c.Type == "text" || c.Type == "compose" || c.Type == "dialog" {
		longest = maxText
	}
	for _, s := range []string{c.Type, c.Event, c.Button, c.Key, c.Code, c.ID} {
		if len(s) > maxName {
			return errCommand
		}
	}
	switch {
	case len(c.Text) > longest, !utf8.ValidString(c.Text), len(c.URL) > maxURL:
		return errCommand
	case c.Type == "edit" && editing(c.Event) == "",
		c.Type == "mouse" && (!slices.Contains([]string{"down", "up", "move"}, c.Event) || !slices.Contains([]string{"", "left", "middle", "right", "back", "forward"}, c.Button)),
		c.Type == "key" && !slices.Contains([]string{"down", "up"}, c.Event):
		return errCommand
	case !slices.Contains([]string{"drawn", "mouse", "wheel", "key", "compose", "text", "dialog", "pick", "files", "edit", "navigate", "back", "forward", "reload", "tab", "new_tab", "close_tab"}, c.Type):
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
	case "wheel", "key", "compose", "text", "pick", "edit":
		return true
	}
	return false
}

// commandOverhead is the memory of a Command without its strings, in bytes, rounded up.
const commandOverhead = 512

// size returns the memory of the command, in bytes.
func (c Command) size() int {
	names := 0
	for _, n := range c.Names {
		names += len(n) + 16 // its header
	}
	return commandOverhead + names + len(c.Type) + len(c.Event) + len(c.Button) + len(c.Key) + len(c.Code) + len(c.Text) + len(c.URL) + len(c.ID)
}
