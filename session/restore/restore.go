// Package restore restores environments. It finds what a session starts from, starts a
// Chrome with it, and reports what was restored. It takes the quickest restore path that
// restores everything.
//
// The paths, the quickest first: the parked Chrome of a memory snapshot, thawed; a
// standby, which has loaded the environment already; the archive, unpacked into a spare
// (warm) or into a Chrome that starts meanwhile (cold).
package restore

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Config are the settings of a Restorer.
type Config struct {
	Discarded Discarded
	Now       func() time.Time
	Log       *slog.Logger
}

// Discarded knows the sessions that ended without a save and can still be saved; see
// undo.Keeper.
type Discarded interface {
	// Until returns until when a session can be saved; ok is false if it cannot.
	Until(sessionID string) (_ time.Time, ok bool)
}

// Browsers starts Chromes, each in its own run directory; see browsers.Launcher.
type Browsers interface {
	Yields(owner string) bool
	NewDir() (*browser.Dir, error)
	Spare(ctx context.Context, dir *browser.Dir, o browser.Options) (browsers.Spare, error)
	Fresh(ctx context.Context, dir *browser.Dir, o browser.Options) (browsers.Chrome, error)
	Restored(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (browsers.Chrome, []state.Component, error)
	Standby(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (browsers.Standby, error)
}

// Ready hands out the Chromes that are kept ready; see capacity.Manager.
type Ready interface {
	TakeParked(snapshotID string, fits func(*Parked) (why string)) (_ *Parked, ok bool, why string)
	TakeStandby(snapshotID, engine string, fits func(*Standby) (why string)) (_ *Standby, ok bool, why string)
	KeepsSpares(engine string) bool
	TakeSpare(engine string) (*Spare, bool)
	// FreeCapacity ends a Chrome that is kept ready if the slot is needed for one that is
	// about to start.
	FreeCapacity(ctx context.Context)
}

// Archives gives access to the files of environments.
type Archives interface {
	// Open reads a snapshot's document.
	Open(ctx context.Context, row profiles.Snapshot) (snapshot.Snapshot, error)
	// Hold prevents the removal of a snapshot until release is called.
	Hold(ctx context.Context, row profiles.Snapshot) (release func(), err error)
	// Readable returns an error if no key of this daemon opens the archive.
	Readable(saved snapshot.Snapshot) error
	// Unpack unpacks the archive into a user data directory. If into is not nil, Unpack may
	// return when the head of the archive is unpacked; the result then has the tail.
	Unpack(ctx context.Context, saved snapshot.Snapshot, userDataDir string, into *TailFolder) (UnpackResult, error)
	// Filter removes from a user data directory what the selection leaves out.
	Filter(ctx context.Context, userDataDir string, selection state.Selection) ([]state.Component, error)
	// CopyExtension copies an extension's files, by their hash, to a folder.
	CopyExtension(ctx context.Context, sha256, folder string) error
	// SaveReport returns what the save of a snapshot reported.
	SaveReport(row profiles.Snapshot) SaveReport
	// AwaitRescue waits until the rescue of a session has ended: the save of what it left
	// when its Chrome or its daemon died.
	AwaitRescue(ctx context.Context, sessionID string) error
}

// TailFolder says where the tail of an archive is unpacked, and who owns the files of the
// archive.
type TailFolder struct {
	Path  string // it is created
	Owner snapshot.Owner
}

// Tail is the part of an archive that follows its head.
type Tail interface {
	// Wait starts the unpacking of the tail and returns when it has ended. If ctx ends, the
	// unpacking is cancelled. Wait may be called again.
	Wait(ctx context.Context) error
	// Stop ends the unpacking and waits until it has ended.
	Stop()
}

// UnpackResult is what an archive has besides the files of the profile.
type UnpackResult struct {
	Document state.Document
	Notes    *Notes // nil: none
	Entries  int    // files and folders that were written, those of the tail included
	Refused  int    // files that a profile must not contain
	// Tail is what follows later; nil: nothing. Its Wait or Stop must be called.
	Tail Tail
	// Release must be called once, when the document is in the browser or will not be.
	// Documents take much memory, so only a few large ones are restored at once.
	Release func()
}

// SaveReport is what the save of a snapshot reported.
type SaveReport struct {
	Components []state.Component
	Logins     []state.Login
	Damaged    bool // a checkpoint with damage
}

// Catalogue is where a Restorer looks up snapshots and defaults.
type Catalogue interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	Snapshots(ctx context.Context, f profiles.SnapshotFilter) (page []profiles.Snapshot, next string, err error)
	Default(ctx context.Context, userID string) (profiles.Default, error)
	DefaultHistory(ctx context.Context, userID string, limit int, startAfter string) (page []profiles.PastDefault, next string, err error)
	NewestSnapshot(ctx context.Context, sessionID string) (profiles.Snapshot, error)
}

// Restorer restores environments. Its methods are safe for concurrent use.
type Restorer struct {
	cfg         Config
	browsers    Browsers
	ready       Ready
	archives    Archives
	catalogue   Catalogue
	log         *slog.Logger
	chromeReady atomic.Bool // a spare of full Chrome has started before
}

// New makes a Restorer.
func New(cfg Config, b Browsers, ready Ready, archives Archives, catalogue Catalogue) *Restorer {
	return &Restorer{cfg: cfg, browsers: b, ready: ready, archives: archives, catalogue: catalogue, log: cfg.Log}
}

// Start starts a Chrome with an environment. It uses the parked Chrome if there is one,
// else the files.
func (r *Restorer) Start(ctx context.Context, q Request, e Environment) (StartResult, error) {
	if e.Source == nil {
		return r.startFresh(ctx, q)
	}
	began := r.cfg.Now()
	report := &Report{
		Source: *e.Source, SnapshotID: e.Snapshot.ID, RequestedMode: string(snapshot.Filesystem),
		Datadir: state.Datadir(e.Snapshot.Datadir), Verification: VerificationPending, Warnings: []string{},
		Components: []state.Component{}, Differences: []state.Difference{},
	}
	if q.AllowMemory {
		report.RequestedMode = e.Snapshot.Mode
	}
	saved := r.archives.SaveReport(*e.Snapshot)
	var parked *Parked
	if report.RequestedMode == string(snapshot.Memory) {
		parked, report.FallbackReason = r.takeParked(ctx, q, *e.Snapshot)
	}
	var s StartResult
	if parked != nil {
		s = parked.started()
		report.Mode, report.Path = string(snapshot.Memory), PathParked
		report.Components = asRestored(saved.Components)
	} else {
		files, err := r.FromFiles(ctx, q, *e.Snapshot)
		if err != nil {
			return StartResult{}, err
		}
		s, report.Components = files.StartResult, files.Components
		report.Mode, report.Path = string(snapshot.Filesystem), files.path
		report.addFallbackReason(files.why)
		report.Warnings = append(state.CaptureWarnings(s.Document), timedOut(report.Components)...)
	}
	if w := unreadCrash(s.Document); w != "" {
		report.Warnings = append(report.Warnings, w)
	}
	report.Warnings = append(report.Warnings, expiredLogins(saved.Logins, s.Document, r.cfg.Now())...)
	if s.Partial && q.Origins.All() && e.Source.Type == SourceUserDefault {
		s.Partial = false // the default itself is partial
	}
	report.Warnings = append(report.Warnings, r.skippedCheckpoint(ctx, e)...)
	if other := otherEngine(e.Snapshot.Engine, s.Chrome.Engine()); len(other) > 0 {
		report.Warnings = append(report.Warnings, other...)
	} else if s.Chrome.Engine() == browser.EngineChrome {
		report.Warnings = append(report.Warnings, shortLists(report.Components)...)
	}
	report.Chrome = Versions{Saved: e.Snapshot.Chrome, Running: s.Chrome.Version()}
	if s.ProfileUnused() {
		report.reportUnusedProfile()
		s.Document = s.Document.WithoutDatadir()
	}
	if parked != nil {
		// Set last: nothing above needs it, and only the verification reads it.
		s.Document = parked.Document
	}
	report.bound()
	report.Notes = s.Notes
	s.Report, s.At = report, r.cfg.Now().UTC()
	report.DurationMS = s.At.Sub(began).Milliseconds()
	return s, nil
}

// kill ends a Chrome, even if the caller's context has ended.
func (r *Restorer) kill(ctx context.Context, c interface{ Kill(context.Context) error }) {
	if err := c.Kill(context.WithoutCancel(ctx)); err != nil {
		r.log.Error(browsers.EndsLate, "error", err)
	}
}

// remove removes a run directory; see [browsers.Remove].
func (r *Restorer) remove(dir *browser.Dir) { browsers.Remove(dir, r.log) }
