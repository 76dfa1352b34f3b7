// Package answer describes sessions to callers: as Go values, and as the JSON that
// clients and webhooks receive.
package answer

import (
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/restore"
)

// Info describes a session to a caller.
type Info struct {
	profiles.Session
	// Tickets are those that the caller's key may have; none after the session has ended.
	Tickets map[access.Purpose]string
	// Restored is the restore report; nil for a session that was not restored.
	Restored *restore.Report
	// AutoSaved is the status of automatic checkpoints; nil if the session makes none.
	AutoSaved *autosave.Status
	// BrowserRestarted reports that Chrome was reopened after a failed save or a crash.
	BrowserRestarted bool
	// Restarting reports that the Chrome of a session in error is being started again,
	// after a crash or by a resume. Calls that need the browser wait.
	Restarting bool
	// Rescuing reports that the daemon of a session in error was killed, or its Chrome has
	// crashed, and that the session's data is being saved.
	Rescuing bool
	// UndoUntil is until when the session, which ended without a save, can still be saved;
	// nil: it cannot. See [save.EndAnswer].
	UndoUntil *time.Time
	// Usage is what the session uses now; nil if it has no Chrome that clients may use.
	Usage *Usage
	// HasAgent reports that a client follows the session's events, or that it has a
	// webhook.
	HasAgent bool
	// Existing reports that a create returned an existing session: a repeated session_id
	// with the same body, or on_live=share.
	Existing bool
}

// Ended reports whether the session has ended, or failed without a restart or rescue under
// way.
func (i Info) Ended() bool { return i.Status.Ended() && !i.Restarting && !i.Rescuing }

// Acknowledgement is the answer to pause, resume and cancel. Status is "paused",
// "already_paused", "resumed", "already_running" or "cancelled".
type Acknowledgement struct {
	Success bool   `json:"success"`
	Status  string `json:"status"`
	Message string `json:"message"`
}
