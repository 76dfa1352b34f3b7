package confine

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// order says what a child does. It is the first line of the child's standard input.
type order struct {
	Work    string
	Request json.RawMessage
	Folder  string // "": none
	UID     int    // the user to become; that of the daemon if it does not run as root
	// OwnNetwork says that the daemon started the child in a new network namespace.
	OwnNetwork bool
	Limits     limits
	Need       Layers // without these the child does no work
}

// header is the first value of a child's answer. If it has no error, the answer itself
// follows.
type header struct {
	Layers  Layers
	Failed  string     `json:",omitempty"` // why the child could not give up its rights
	Code    fault.Code `json:",omitempty"` // of the work's error
	Message string     `json:",omitempty"`
}

// err returns the error that a header carries.
func (h header) err() error {
	switch {
	case h.Failed != "":
		return fault.Wrap(errors.New(h.Failed), fault.Internal, "confine.run", "a process that reads uploads could not give up its rights; the log says why")
	case h.Code != "":
		return fault.New(h.Code, "confine.run", "%s", h.Message)
	}
	return nil
}

// maxMessage bounds the text of a child's error, in bytes.
const maxMessage = 16 << 10

// bounded returns the beginning of a text.
func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}
