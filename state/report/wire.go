package report

import (
	"encoding/json"
	"strings"
)

// plain is a line without its reason.
type plain Component

// wire is a line on the wire.
type wire struct {
	plain
	Reason
}

// MarshalJSON writes a line, with its reason beside the other fields.
func (c Component) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{plain(c), c.Reason})
}

// UnmarshalJSON reads a line. One that was stored before reasons had codes gets
// the code of its text.
func (c *Component) UnmarshalJSON(data []byte) error {
	line := wire{plain: plain(*c)}
	if err := json.Unmarshal(data, &line); err != nil {
		return err
	}
	*c = Component(line.plain)
	c.Reason = line.Reason
	if c.Reason.Code == "" {
		c.Reason.Code = storedCode(c.Reason.Text)
	}
	return nil
}

// storedCode is the code of a text that was stored before reasons had codes. The
// texts are those of then and never change: today's may be worded as they please.
// A text that nothing was decided by is Other.
func storedCode(text string) Code {
	begins := func(with string) bool { return strings.HasPrefix(text, with) }
	switch {
	case text == "":
		return ""
	case begins("left out by origins"):
		return LeftOut
	case begins("the shell engine does not use it; it stays in the environment"):
		return NotInShell
	case begins("restore_tabs is false"):
		return TabsUnwanted
	case text == "there was no time to lay it down before the first page":
		return NoTime
	case begins("not counted"):
		return NotCounted
	default:
		return Other
	}
}
