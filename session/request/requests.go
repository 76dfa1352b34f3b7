package request

import (
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// End holds the options of a session's end.
type End struct {
	Mode          save.Mode
	SaveAsDefault bool
	Conflict      save.Conflict
	Origins       state.Selection // whose state is saved; only for SaveFilesystem
}

// EndAll says whose sessions a DELETE /v1/sessions ends.
type EndAll struct {
	End
	UserID string // "": the caller's user; the caller must be allowed to act for any other
	All    bool   // the sessions of all users; needs the admin right
}

// Checkpoint holds the options of a snapshot of a running session.
type Checkpoint struct {
	SaveAsDefault bool
	Conflict      save.Conflict
	Label         string
	Auto          bool // made by the daemon; does not count as use of the session
}

// List holds the options of a page of sessions.
type List struct {
	Status     string // "" for every status
	UserID     string // "" for all users that the caller may see
	Limit      int
	StartAfter string
}
