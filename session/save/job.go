package save

import (
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// Mode is what an end does with the environment.
type Mode string

// The modes of an end.
const (
	None       Mode = "none"
	Filesystem Mode = "filesystem"
	Memory     Mode = "memory"
)

// Conflict says what a save does when the default has moved meanwhile.
type Conflict string

// The ways of a conflict.
const (
	Keep      Conflict = "keep"      // keep the winner; the snapshot is kept too
	Overwrite Conflict = "overwrite" // move the default all the same
)

// Job is one save, with what is known of the environment that is saved. The owner of
// the session makes it; a [Saver] carries it out on another goroutine.
type Job struct {
	Session  profiles.Session // the record that the snapshot goes to
	Dir      *browser.Dir
	Chrome   browsers.Chrome // nil: it could not be reopened after a failed save, or died with its daemon
	Document state.Document  // the last reading: with a nil Chrome, or after a restart that failed
	Options  browser.Options // of a Chrome that has to be started again
	Missed   []state.Missed  // what an earlier daemon knew and is lost
	Notes    *restore.Notes  // that go into the snapshot; nil: not looked up, or none
	// RestoredAt is when the snapshot that it began with was in place; zero: not known, or none.
	RestoredAt time.Time
	Partial    bool            // the session was given only some origins of an environment
	Given      state.Selection // those origins; of a rescue only
	// Arrived is set where no session ran: the environment comes from elsewhere,
	// and the commit makes the session's record too.
	Arrived *Arrival

	Mode    Mode
	Origins state.Selection // whose state is saved
	Label   string          // of the snapshot
	GoesOn  bool            // it is a checkpoint: the session does not end
	Auto    bool            // nobody asked for this save
	Rescue  bool
	Dead    bool // Chrome has crashed: only its user data directory is left
	Restart bool // instead of a save, its Chrome is started again
	// CrashUntold: webhooks were not notified of the crash.
	CrashUntold bool
	Used        bool            // something may have changed since the last save
	Status      profiles.Status // that the session ends with
	Reason      profiles.Reason

	Move     *profiles.Move // nil: the default does not move
	NotMoved string         // why the default does not move, although the caller asked for it
	// checked is the outcome of the login check that the user asks for before
	// the default moves; where it failed, Move is nil.
	checked *login.Outcome
	left    []state.Component // what the origins kept out of the snapshot
}

// Arrival is what an import brings beside its document and files.
type Arrival struct {
	Lines    []state.Component // of what was left out
	Sealed   []state.Component // of what came in and only another machine's keyring opens
	Warnings []string
}

// heldBack returns the job; with a problem, one that moves no default.
func (j Job) heldBack(problem string) Job {
	if problem != "" && j.Move != nil {
		j.Move, j.NotMoved = nil, problem
	}
	return j
}

// Ended is the outcome of an ending.
type Ended struct {
	Answer EndAnswer
	Err    error
	// Over: the session has ended. Otherwise it runs on, in Chrome; a nil
	// Chrome is the state error, and its user data directory is kept.
	Over     bool
	Chrome   browsers.Chrome
	Reopened *restore.Started // Chrome is another one, on the same user data directory
	Document state.Document   // with a nil Chrome: its last reading
}
