// Package save makes snapshots of environments: at the end of a session, or while it runs
// (a checkpoint). It also saves after a crash of Chrome or of the daemon (a rescue), and
// from other sources (an import).
//
// A [Job] says what to save: the session's record, its Chrome or run directory, and what
// the save is to do. The result, [EndResult] or [CheckpointResult], has the caller's
// answer and says whether the session continues. Every snapshot is made by one sequence
// of steps, in [Saver.Keep]. An error has the code save_failed unless a client can act on
// another code (see [Failure]). After an error nothing is stored.
package save

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Records is what saves need of the catalogue; see [profiles.SnapshotStore],
// [profiles.DefaultStore] and [profiles.SessionStore].
type Records interface {
	agent.NoteReader
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	NewestSnapshot(ctx context.Context, sessionID string) (profiles.Snapshot, error)
	Default(ctx context.Context, userID string) (profiles.Default, error)
	SetDefault(ctx context.Context, userID, snapshotID string, ifVersion *int64, at time.Time) (profiles.Default, error)
	Commit(ctx context.Context, c profiles.Commit) (profiles.MoveResult, error)
	EndSession(ctx context.Context, e profiles.End) error
	UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error)
	ArchiveInUse(ctx context.Context, archiveID string) (bool, error)
}

// Archives stores environments; see [snapshot.Vault].
type Archives interface {
	Save(ctx context.Context, d snapshot.Draft) (snapshot.Snapshot, error)
	MarkCommitted(s snapshot.Snapshot)
	Delete(ctx context.Context, loc snapshot.Location, id string, inUse snapshot.InUse) error
	Open(ctx context.Context, loc snapshot.Location, id string) (snapshot.Snapshot, error)
	Unpack(ctx context.Context, s snapshot.Snapshot, dst string, o snapshot.UnpackOptions) (snapshot.UnpackResult, error)
	CheckSpace(ctx context.Context, need int64) error
	Health(ctx context.Context) error
}

// Datadirs is what a save needs to know of Chrome's user data directories while no Chrome
// uses them. Package save knows none of Chrome's files by name; browser/profile does, and
// its Disk implements this interface.
type Datadirs interface {
	// Select lists the files that belong into an archive, sorted by name.
	Select(ctx context.Context, userDataDir string) ([]browser.File, error)
	// Unprepare removes from the files what Stasis itself wrote into them.
	Unprepare(files []browser.File) ([]browser.File, error)
	// Inspect reads the profile that is being saved and adds what it finds to doc.
	Inspect(ctx context.Context, userDataDir string, doc state.Document) (browser.Survey, error)
	// Compare adds to the document of a closed profile what did not reach the disk.
	Compare(ctx context.Context, userDataDir string, doc state.Document) state.Document
	// Merge takes the newer copy of each part: from a reading, or from the profile of a
	// Chrome that died later.
	Merge(ctx context.Context, userDataDir string, r browser.Reading) (state.Document, error)
}

// Snapshots protects stored snapshots from removal and reads them; see library.Snapshots.
type Snapshots interface {
	Hold(ctx context.Context, row profiles.Snapshot, what string) (release func(), err error)
	Document(ctx context.Context, row profiles.Snapshot, what string) (state.Document, error)
}

// Dirs makes run directories; see [browsers.Launcher]. The caller removes them.
type Dirs interface {
	NewDir() (*browser.Dir, error)
}

// Restorer starts a Chrome on the profile that another one left; see [restore.Restorer].
type Restorer interface {
	Reopen(ctx context.Context, o restore.ReopenRequest) (restore.StartResult, error)
}

// ReadyChromes manages the Chromes that are kept ready.
type ReadyChromes interface {
	// Park keeps the frozen Chrome of a session's snapshot.
	Park(ctx context.Context, snapshotID string, rec profiles.Session, chrome *restore.Parked) error
	DefaultChanged()
}

// Checker runs login checks; see [login.Checker].
type Checker interface {
	Check(ctx context.Context, chrome login.Chrome, check settings.LoginCheck) (login.Outcome, error)
}

// Undo keeps the profiles of discarded sessions for a while; see undo.Keeper.
type Undo interface {
	On() bool
	// Keep keeps the profile of a job whose Chrome has ended, or removes it; then ok is
	// false.
	Keep(j Job) (until time.Time, ok bool)
	// Clear removes all profiles, to free space. It reports whether there were any.
	Clear() bool
}

// Notices makes the deliveries of webhooks; see events.Notices.
type Notices interface {
	For(events ...string) func(profiles.Session) []profiles.Notice
	Wake()
}

// Config is what a Saver needs.
type Config struct {
	Records   Records
	Archives  Archives
	Datadirs  Datadirs
	Snapshots Snapshots
	Dirs      Dirs
	Restorer  Restorer
	Ready     ReadyChromes
	Users     *settings.Users
	Login     Checker
	Undo      Undo
	Notices   Notices
	Meter     Meter
	Unpack    snapshot.Limits // what an archive may unpack to
	RescueTTL time.Duration   // how long a rescue snapshot is kept
	Now       func() time.Time
	Log       *slog.Logger
}

// Saver makes snapshots. Its methods are safe for concurrent use.
type Saver struct {
	cfg         Config
	surveySlots chan struct{} // one value for each profile that is being read
}

// New makes a Saver.
func New(cfg Config) *Saver { return &Saver{cfg: cfg, surveySlots: make(chan struct{}, maxSurveys)} }

var _ Dirs = browsers.Launcher(nil)
