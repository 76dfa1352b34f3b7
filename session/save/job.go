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

// Conflict says what a save does if the default has moved since the session started.
type Conflict string

// The values of Conflict.
const (
	Keep      Conflict = "keep"      // keep the moved default; the snapshot is stored too
	Overwrite Conflict = "overwrite" // move the default all the same
)

// Job is one save and what is known of the environment. The session's goroutine makes it,
// and a [Saver] runs it in another goroutine.
type Job struct {
	Session  profiles.Session // the record that the snapshot belongs to
	Dir      *browser.Dir
	Chrome   browsers.Chrome // nil: reopening it after a failed save failed, or it died with its daemon
	Document state.Document  // the last reading; set if Chrome is nil or a restart failed
	Options  browser.Options // for a Chrome that has to be started again
	Missed   []state.Missed  // what an earlier daemon knew and is lost
	Notes    *restore.Notes  // to save with the snapshot; nil: not looked up yet, or none
	// RestoredAt is when the snapshot that the session started from had been applied;
	// zero: unknown, or none.
	RestoredAt      time.Time
	Partial         bool            // the session was restored with only some origins of an environment
	RestoredOrigins state.Selection // those origins; set for rescues only
	// Import is set if no session ran: an import, or the first scheduled login check of a
	// default. The commit then makes the session's record too.
	Import *Import
	// Examined: [Saver.Examine] has run where the files of an import were read. The daemon
	// does not open these files.
	Examined bool

	Mode      Mode
	Origins   state.Selection // the origins whose state is saved
	Label     string          // of the snapshot
	Continues bool            // a checkpoint: the session continues
	Undoable  bool            // with None: the profile may be kept for a while
	AfterEnd  bool            // the save of a profile that was kept after the session's end
	Auto      bool            // the daemon makes this save, not a caller
	Rescue    bool
	// Admit refuses a save whose refusal loses nothing; see [profiles.Commit]. nil: it is
	// not refused.
	Admit   func(user, key profiles.Stored) error
	Check   func(profiles.Session) error // refuses the commit; see [profiles.Commit]; nil: it is not refused
	Dead    bool                         // Chrome has crashed: only its user data directory is left
	Restart bool                         // start Chrome again; save only if that fails
	// CrashUnreported: webhooks have not been notified of the crash yet.
	CrashUnreported bool
	Turns           int             // of a checkpoint: how many turns of the conversation have ended
	Used            bool            // something may have changed since the last save
	Status          profiles.Status // the session's status after the end
	Reason          profiles.Reason
	Paused          bool // of a move: the session is paused, and is paused again where it continues
	// Hold keeps the run directory of a session that moves, for its files, and returns how many
	// it has; nil: they are not kept. It is called before the commit.
	Hold  func(sessionID string, dir *browser.Dir) (files int, err error)
	files int // what Hold has returned

	Move         *profiles.Move // nil: the default does not move
	DefaultAsked bool           // a caller asked for Move
	NotMoved     string         // why the default does not move although the caller asked for it
	// checked is the result of the login check that the user's settings require before
	// the default moves. If the check failed, Move is nil.
	checked  *login.Outcome
	excluded []state.Component // the report's lines of what Origins leaves out
}

// Import is what an import has besides its document and files.
type Import struct {
	Lines    []state.Component // what was left out
	Sealed   []state.Component // what only another machine's keyring can decrypt
	Warnings []string
}

// withProblem returns the job. If there is a problem, the returned job does not move the
// default.
func (j Job) withProblem(problem string) Job {
	if problem != "" && j.Move != nil {
		j.Move, j.NotMoved = nil, problem
	}
	return j
}

// moves reports whether the session ends only so that another node continues it.
func (j Job) moves() bool { return j.Reason.Code == profiles.ReasonMoved }

// Moved is the outcome of a session that another node continues.
type Moved struct {
	EndAnswer
	Paused bool `json:"paused,omitempty"` // it was paused
	Files  int  `json:"files,omitempty"`  // how many downloads and uploads its node has kept
}

// EndResult is the result of an end.
type EndResult struct {
	Answer EndAnswer
	Err    error
	// SessionEnded: the session has ended. Otherwise it continues in Chrome. If Chrome is
	// nil, the session is in the state error and its user data directory is kept.
	SessionEnded bool
	Chrome       browsers.Chrome
	Reopened     *restore.StartResult // set if Chrome is a new one, on the same user data directory
	Document     state.Document       // the last reading; set if Chrome is nil
}
