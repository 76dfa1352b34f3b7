// Package session is the behaviour of Stasis: who may do what to a session,
// and in which order a create, a restore, a save and an end go. It decides;
// the packages below it do the work.
//
// A live session is one goroutine that owns its state and takes requests in
// turn (see [live]); the [Service] finds it, checks the caller and hands it
// the request.
package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/inspect"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/login/renewal"
	"github.com/stasisd/stasis/session/records"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/rescue"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/restore/archives"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot"
)

// Config are the settings of a Service.
type Config struct {
	Engine      string      // of sessions for which nobody names one; "": browser.EngineChrome
	MaxSessions int         // sessions that may live at once
	MaxClients  int         // CDP clients of a session at once; 0: 64
	Parked      pool.Limits // of frozen Chromes kept by memory snapshots
	Spares      pool.Limits // of empty full Chromes kept ahead of need
	ShellSpares pool.Limits // of empty headless shells
	Standby     pool.Limits // of Chromes kept with users' defaults brought in
	// Calm is how long after a create none of those is started.
	Calm      time.Duration
	RescueTTL time.Duration // how long a rescue snapshot is kept
	// Retention is the policy of users whose settings have none; nil keeps all.
	Retention *library.Retention
	// PruneGrace is the age up to which no policy takes a snapshot: who has just
	// saved can still name it.
	PruneGrace time.Duration
	Unpack     snapshot.Limits // what an archive may unpack to
	// Savers is how many sessions are saved at once when the daemon stops.
	Savers int
	Waits  Waits
}

// Waits are times that are the usual ones where they are 0.
type Waits struct {
	RescuePause     time.Duration // before a rescue that failed is tried again at first
	RenewalPatience time.Duration // of a create, with a scheduled login check of its environment
	RenewalBetween  time.Duration // between two tries to save what such a check found
	Reopening       time.Duration // of an ending, with a Chrome that is being started again
}

// Deps are what a Service stands on.
type Deps struct {
	Browsers  browsers.Launcher
	Datadirs  Datadirs
	Keys      Keys
	Vault     *snapshot.Vault
	Catalogue Catalogue
	Journal   Journal // of runs and their events
	Notices   Notices // for webhooks
	// Extensions keeps the files of uploaded extensions.
	Extensions *extension.Store
	// Room tells whether memory allows one more Chrome; nil: it does.
	Room func() bool
	// Large bounds how many large state documents are restored at once; nil: [archives.MaxLarge].
	Large archives.Turns
	// Meter counts; nil: nothing is counted.
	Meter Meter
	Now   func() time.Time
	Log   *slog.Logger
}

// Keys are the API keys that callers come with; see [access.Keys].
type Keys interface {
	// Caller is who calls with a key as it is now; unauthorized where it was deleted.
	Caller(ctx context.Context, id string) (access.Caller, error)
	// Connected calls end when the caller's key is deleted, until leave is called.
	Connected(ctx context.Context, c access.Caller, end func()) (leave func(), err error)
	// While is ctx until the caller's key is deleted.
	While(ctx context.Context, c access.Caller) (_ context.Context, leave func(), err error)
}

// Journal records what happens in sessions; see [events.Journal].
type Journal interface {
	// Begin begins a session's next run.
	Begin(sessionID string) *events.Writer
	// Over reports that a session has ended; see [events.Journal.Over].
	Over(sessionID string)
	// Flush waits until what was recorded of a session is on disk.
	Flush(ctx context.Context, sessionID string)
	// Followed reports whether anybody follows a session now.
	Followed(sessionID string) bool
}

// Service creates, finds, resumes and ends sessions. Its methods are safe for concurrent
// use. Close must be called.
type Service struct {
	cfg  Config
	deps Deps

	snapshots *library.Snapshots
	pruner    *library.Pruner
	janitor   *library.Janitor
	capacity  *capacity.Manager[*restore.Parked, *restore.Spare, *restore.Standby]
	restorer  *restore.Restorer
	users     *settings.Users
	resolver  *request.Resolver
	checker   *login.Checker
	saver     *save.Saver
	importer  *importer.Importer
	renewals  *renewal.Renewals
	rescues   *rescue.Rescues
	records   *records.Records
	inspector *inspect.Inspector
	archives  *archives.Archives
	clients   *capacity.Clients

	// ctx is the life of the daemon's own work (saves, sessions); it ends
	// after everything was given the time to end by itself.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	sessions *registry.Registry[*live]
}

// New makes a Service. [Service.Recover] must run before the first request.
func New(cfg Config, deps Deps) *Service {
	s := &Service{cfg: cfg, deps: deps, clients: capacity.NewClients(cfg.MaxClients)}
	if s.deps.Meter == nil {
		s.deps.Meter = unmetered{}
	}
	if s.deps.Room == nil {
		s.deps.Room = func() bool { return true }
	}
	if s.deps.Large == nil {
		s.deps.Large = capacity.NewTurns(archives.MaxLarge)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.capacity = capacity.New[*restore.Parked](capacity.Config{
		Sessions: cfg.MaxSessions, Engine: cfg.Engine, Parked: cfg.Parked,
		Spares:  map[string]pool.Limits{browser.EngineChrome: cfg.Spares, browser.EngineShell: cfg.ShellSpares},
		Standby: cfg.Standby, Calm: cfg.Calm, Now: deps.Now, Log: deps.Log,
	}, forCapacity{s}, deps.Catalogue)
	s.sessions = registry.New[*live](s.capacity.HasParked)
	s.records = records.New(deps.Catalogue, deps.Notices)
	s.inspector = inspect.New(deps.Catalogue, Lookup{s})
	s.snapshots = library.NewSnapshots(deps.Catalogue, deps.Vault, s.capacity, deps.Log)
	s.pruner = library.NewPruner(library.PrunerConfig{Retention: cfg.Retention, Grace: cfg.PruneGrace, Now: deps.Now, Log: deps.Log},
		deps.Catalogue, s.snapshots, forLibrary{s})
	s.janitor = library.NewJanitor(library.JanitorConfig{Records: deps.Catalogue, Pruner: s.pruner,
		Events: events.KeepFor, Answers: repeatWindow, Deliveries: events.KeepDeliveries, Now: deps.Now, Log: deps.Log})
	s.archives = archives.New(archives.Config{Vault: deps.Vault, Snapshots: s.snapshots, Datadirs: deps.Datadirs, Extensions: deps.Extensions,
		Sessions: forArchives{s}, Large: s.deps.Large, Unpack: cfg.Unpack})
	s.restorer = restore.New(restore.Config{Now: deps.Now, Log: deps.Log}, deps.Browsers, s.capacity, s.archives, deps.Catalogue)
	s.users = settings.NewUsers(deps.Catalogue, deps.Now, s.settingsChanged)
	s.resolver = request.NewResolver(cfg.Engine, s.users, deps.Browsers, deps.Catalogue)
	s.checker = login.NewChecker(login.Config{Records: deps.Catalogue, Users: s.users, Sessions: checks{s.sessions, s}, Places: s.capacity, Snapshots: s.snapshots,
		Restorer: s.restorer, Notices: deps.Notices, Meter: s.deps.Meter, Now: deps.Now, Log: deps.Log})
	s.saver = save.New(save.Config{Records: deps.Catalogue, Archives: deps.Vault, Datadirs: deps.Datadirs, Snapshots: s.snapshots, Dirs: deps.Browsers,
		Restorer: s.restorer, Kept: s.capacity, Users: s.users, Login: s.checker, Notices: deps.Notices, Meter: s.deps.Meter,
		Unpack: cfg.Unpack, RescueTTL: cfg.RescueTTL, Now: deps.Now, Log: deps.Log})
	s.importer = importer.New(importer.Config{Records: deps.Catalogue, Archives: deps.Vault, Datadirs: deps.Datadirs, Dirs: deps.Browsers, Keys: deps.Keys,
		Turns: capacity.NewTurns(importer.MaxImports), Saver: s.saver, Users: s.users, Login: s.checker, Unpack: cfg.Unpack, Meter: s.deps.Meter, Now: deps.Now, Log: deps.Log})
	s.renewals = renewal.New(s.ctx, renewal.Config{Records: deps.Catalogue, Archives: deps.Vault, Snapshots: s.snapshots, Pruner: s.pruner, Restorer: s.restorer,
		Engines: deps.Browsers, Datadirs: deps.Datadirs, Saver: s.saver, Checker: s.checker, Places: s.capacity, Sessions: s.sessions,
		Room: s.deps.Room, MaxSessions: cfg.MaxSessions, Patience: cfg.Waits.RenewalPatience, Between: cfg.Waits.RenewalBetween,
		Meter: s.deps.Meter, Now: deps.Now, Log: deps.Log})
	s.rescues = rescue.New(s.ctx, rescue.Config{Records: deps.Catalogue, Archives: deps.Vault, Saver: s.saver, Notices: deps.Notices, FirstPause: cfg.Waits.RescuePause, Now: deps.Now, Log: deps.Log})
	return s
}

// Close stops taking sessions, saves every live one as a rescue snapshot and
// ends it, ends the parked Chromes and waits for all of it. When ctx ends
// first, what is left is killed unsaved; its datadirs are rescued at the next
// start. So are those of sessions whose save failed, which is an error.
func (s *Service) Close(ctx context.Context) error {
	s.sessions.Close()
	all := s.sessions.All()
	s.renewals.Stop()
	s.rescues.Stop() // saves of live sessions come first
	s.capacity.Stop()

	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	gate := make(chan struct{}, max(s.cfg.Savers, 1))
	var savers sync.WaitGroup
	unsaved := make([]error, len(all))
	for i, l := range all {
		savers.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if err := l.shutdown(ctx); err != nil && ctx.Err() == nil {
				s.deps.Log.Error("a session could not be saved; its data is kept, and the next start saves it", "session", l.id, "error", err)
				unsaved[i] = save.Failure(err, "session "+l.id+" could not be saved; its data is kept, and the next start saves it")
			}
		})
	}
	savers.Wait()
	s.renewals.Wait()
	s.rescues.Wait()
	err := errors.Join(errors.Join(unsaved...), s.capacity.Close(context.WithoutCancel(ctx)))
	s.cancel()
	s.work.Wait()
	return err
}

// Ready reports whether sessions can be taken: the daemon is not stopping, and
// catalogue and store answer.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.sessions.WhileOpen("session.ready", func() {}); err != nil {
		return err
	}
	return errors.Join(s.deps.Catalogue.Health(ctx), s.deps.Vault.Health(ctx))
}

// Users returns the settings of users.
func (s *Service) Users() *settings.Users { return s.users }

// Checker returns what runs login checks.
func (s *Service) Checker() *login.Checker { return s.checker }

// Inspector returns what describes sessions.
func (s *Service) Inspector() *inspect.Inspector { return s.inspector }

// Importer returns what takes environments that were saved elsewhere.
func (s *Service) Importer() *importer.Importer { return s.importer }

// settingsChanged has a user's new settings heeded.
func (s *Service) settingsChanged(userID string, now settings.Settings) {
	s.capacity.SetStandbys(userID, settings.Given(now.Standby) > 0)
	s.renewals.SettingsChanged(userID, now)
}

// Datadirs is what sessions need of Chrome's user data directories at rest; browser/profile's
// Disk is this interface.
type Datadirs interface {
	save.Datadirs
	importer.Datadirs
}

// Meter counts what happens, for who runs the daemon. Its methods are safe for
// concurrent use and do not wait.
type Meter interface {
	login.Meter
	save.Meter
}

// unmetered counts nothing.
type unmetered struct{}

func (unmetered) LoginChecked(login.Verdict)   {}
func (unmetered) LoginExpired()                {}
func (unmetered) Saved(save.Kind, save.Result) {}

// Counts are for metrics and tests.
type Counts struct {
	Live, Parked, Spares, Standbys, Rescuing int
	// WaitForRescue are the calls that wait for a rescue, and WaitForCheck the creates
	// that wait for a scheduled login check.
	WaitForRescue, WaitForCheck int
}

// Counts tells how many sessions live, how many Chromes are parked, are spare
// and stand by, and how many sessions of a dead daemon are being rescued.
func (s *Service) Counts() Counts {
	kept := s.capacity.Counts()
	sessions := s.sessions.Counts()
	pending, waiting := s.rescues.Counts()
	return Counts{Live: sessions.Live, Parked: kept.Parked, Spares: kept.Spares, Standbys: kept.Standbys, Rescuing: pending,
		WaitForRescue: waiting, WaitForCheck: sessions.Waiting}
}

// forget takes an ended session out of the live ones, which ends its tickets, and
// gives its place on.
func (s *Service) forget(l *live) {
	s.deps.Journal.Over(l.id) // before another create may begin it anew
	s.sessions.Remove(l.id)
	s.capacity.Release()
	s.capacity.Replenish()
}
