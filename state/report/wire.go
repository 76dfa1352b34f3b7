package report

import (
	"encoding/json"
	"strings"
)

// plain is a line without its reason.
type plain Component

// wire is the JSON form of a line.
type wire struct {
	plain
	Reason
}

// MarshalJSON writes a line with its reason as two more fields.
func (c Component) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{plain(c), c.Reason})
}

// UnmarshalJSON reads a line. A line stored before reasons had codes gets its code from
// its text.
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

// storedCode returns the code for a text that was stored before reasons had codes. These
// texts never change, whatever today's texts are. A text that decided nothing is Other.
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
