// Package answer describes sessions to callers: as values, and as the JSON that clients
// and webhooks get.
package answer

import (
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/restore"
)

// Info describes a session to a caller.
type Info struct {
	profiles.Session
	// Tickets are what the caller's key may have of this session; none once it has ended.
	Tickets map[access.Purpose]string
	// Restored is the restore report; nil for a fresh session.
	Restored *restore.Report
	// AutoSaved tells of automatic checkpoints; nil where none are made any more, or were.
	AutoSaved *autosave.Status
	// BrowserRestarted tells that Chrome was reopened after a failed save or a crash.
	BrowserRestarted bool
	// Restarting tells of a session in error that its Chrome is being started again,
	// after a crash or by a resume: who asks for the browser waits.
	Restarting bool
	// Rescuing tells of a session in error that its daemon was killed and that what
	// it left is being saved.
	Rescuing bool
	// HasAgent tells that somebody follows the session's events, or has a webhook told of it.
	HasAgent bool
	// Existing tells that a create found the session already there: a repeated
	// session_id with the same body, or on_live=share.
	Existing bool
}

// Over reports whether the session has ended, or failed for good as far as is known.
func (i Info) Over() bool { return i.Status.Ended() && !i.Restarting && !i.Rescuing }

// Acknowledged is the answer of pause, resume and cancel. Status is
// "paused", "already_paused", "resumed", "already_running" or "cancelled".
type Acknowledged struct {
	Success bool   `json:"success"`
	Status  string `json:"status"`
	Message string `json:"message"`
}
