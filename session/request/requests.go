package request

import (
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// End asks for a session's end.
type End struct {
	Mode          save.Mode
	SaveAsDefault bool
	Conflict      save.Conflict
	Origins       state.Selection // whose state is saved; of SaveFilesystem alone
}

// EndAll says whose sessions a DELETE /v1/sessions ends.
type EndAll struct {
	End
	UserID string // "" for the caller's own; else the caller must be allowed to act for it
	All    bool   // everybody's: needs the admin right
}

// Checkpoint asks for a snapshot of a session that runs on.
type Checkpoint struct {
	SaveAsDefault bool
	Conflict      save.Conflict
	Label         string
	Auto          bool // it is the daemon's own, and no use of the session
}

// List asks for a page of sessions.
type List struct {
	Status     string // "" for every status
	UserID     string // "" for all that the caller may see
	Limit      int
	StartAfter string
}
