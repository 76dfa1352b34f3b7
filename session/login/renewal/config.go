// Package renewal keeps logins alive. As often as users' settings say, it opens their
// defaults, checks the login, and saves what the site renewed as the user's new default.
//
// The catalogue decides when a check is due (due.go). Checks are made one after the other
// (renewals.go, renew.go). If a create needs the environment, the check makes way for it
// ([Renewal.GiveWay]). The outcome of a check is stored with the user; see
// [login.Outcome].
package renewal

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Records is what the schedule needs of the catalogue; see [profiles.UserStore],
// [profiles.DefaultStore] and [profiles.SnapshotStore].
type Records interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	Default(ctx context.Context, userID string) (profiles.Default, error)
	User(ctx context.Context, id string) (profiles.User, error)
	UsersWithSettings(ctx context.Context) ([]profiles.User, error)
	LastUsed(ctx context.Context, userID, snapshotID string) (time.Time, error)
}

// Archives reports whether the store can take what a check saves; see [snapshot.Vault].
type Archives interface {
	Health(ctx context.Context) error
	Open(ctx context.Context, loc snapshot.Location, id string) (snapshot.Snapshot, error)
	CheckSpace(ctx context.Context, need int64) error
}

// Snapshots holds and removes stored snapshots; see library.Snapshots.
type Snapshots interface {
	Hold(ctx context.Context, row profiles.Snapshot, what string) (release func(), err error)
	Retire(ctx context.Context, row profiles.Snapshot) (freed int64, err error)
}

// Pruner removes old snapshots of a session; see library.Pruner.
type Pruner interface {
	PruneCheckpoints(ctx context.Context, sessionID string, keep int)
}

// Restorer starts Chromes with snapshots; see [restore.Restorer].
type Restorer interface {
	FromFiles(ctx context.Context, q restore.Request, row profiles.Snapshot) (restore.Files, error)
}

// Engines reports which engines are installed; see browsers.Launcher.
type Engines interface {
	Has(engine string) error
}

// Datadirs lists the files that belong into an archive; see [save.Datadirs].
type Datadirs interface {
	Select(ctx context.Context, userDataDir string) ([]browser.File, error)
}

// Saver makes snapshots; see [save.Saver].
type Saver interface {
	Capture(ctx context.Context, j save.Job) (state.Document, error)
	Survey(ctx context.Context, j save.Job, doc state.Document) (_ state.Document, problem string)
	Keep(ctx context.Context, j save.Job, doc state.Document, files []browser.File) (_ save.EndAnswer, problem string, _ error)
}

// Checker makes checks and stores their outcomes; see [login.Checker].
type Checker interface {
	Check(ctx context.Context, chrome login.Chrome, check settings.LoginCheck) (login.Outcome, error)
	Record(ctx context.Context, userID string, snap profiles.Snapshot, outcome login.Outcome) (login.Outcome, error)
}

// Slots manages the slots of sessions; a check takes one. See capacity.Manager.
type Slots interface {
	AcquireUnlessLast() bool
	Release()
	Replenish()
}

// Sessions registers which sessions and checks use an environment.
type Sessions interface {
	// EnterRenewal registers a check, unless its environment is in use: by a session that
	// is live or being created, by a parked Chrome, or by another check. Creates find the
	// check there until LeaveRenewal.
	EnterRenewal(r *Renewal) bool
	LeaveRenewal(r *Renewal)
}

// Meter counts checks and saves.
type Meter interface {
	login.Meter
	save.Meter
}

// Config is what New needs.
type Config struct {
	Records      Records
	Archives     Archives
	Snapshots    Snapshots
	Pruner       Pruner
	Restorer     Restorer
	Engines      Engines
	Datadirs     Datadirs
	Saver        Saver
	Checker      Checker
	Slots        Slots
	Sessions     Sessions
	MemoryAllows func() bool // reports whether memory allows one more Chrome
	MaxSessions  int
	// Patience is how long a create waits for a check whose Chrome is running. Between is
	// the time between two tries to save the result of a check. 0: the default.
	Patience, Between time.Duration
	// Checked is called with the outcome of each check, and with the snapshot that is the
	// default then.
	Checked func(userID, snapshotID string, o login.Outcome)
	// Turn reports whether this daemon makes checks: of several with one catalogue, one does.
	// nil: it always does.
	Turn  func() bool
	Meter Meter
	Now   func() time.Time
	Log   *slog.Logger
}
