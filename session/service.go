// Package session decides what callers may do with sessions, and in which order a create,
// a restore, a save and an end run their steps. The packages below it do the work.
//
// Each live session has one goroutine that owns its state and handles requests in turn
// (see [liveSession]). The [Service] finds the session, checks the caller and passes the
// request to that goroutine.
package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/inspect"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/login/renewal"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/records"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/rescue"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/restore/archives"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/session/undo"
	"github.com/stasisd/stasis/snapshot"
)

// Config configures a Service.
type Config struct {
	Engine      string         // the engine of sessions that name none; "": browser.EngineChrome
	MaxSessions int            // sessions that may live at once
	Quotas      quota.Quotas   // of users whose settings have none
	Limits      browser.Limits // of each session
	MaxClients  int            // CDP clients of a session at once; 0: 64
	Parked      pool.Limits    // of frozen Chromes that memory snapshots keep
	Spares      pool.Limits    // of empty full Chromes kept ready
	ShellSpares pool.Limits    // of empty headless shells kept ready
	Standby     pool.Limits    // of Chromes kept ready with users' defaults loaded
	// StandbyDelay is how long no standby is started after a create.
	StandbyDelay time.Duration
	RescueTTL    time.Duration // how long a rescue snapshot is kept
	Undo         undo.Limits   // of the profiles of discarded sessions; its Window is 0: none are kept
	// Retention is the policy of users without their own; nil keeps all snapshots.
	Retention *library.Retention
	// PruneGrace is the age below which no policy removes a snapshot, so that a caller
	// that has just saved can still name it.
	PruneGrace time.Duration
	Unpack     snapshot.Limits // how much an archive may unpack to
	// Savers is how many sessions are saved at once when the daemon stops.
	Savers int
	Waits  Waits
}

// Waits are times; 0 means the usual value.
type Waits struct {
	RescuePause     time.Duration // before the first retry of a failed rescue
	RenewalPatience time.Duration // how long a create waits for a scheduled login check of its environment
	RenewalBetween  time.Duration // between two attempts to save what such a check renewed
	Reopening       time.Duration // how long an end waits for a Chrome that is being reopened
}

// Deps are the components that a Service uses.
type Deps struct {
	Browsers  browsers.Launcher
	Datadirs  Datadirs
	Keys      Keys
	Vault     *snapshot.Vault
	Catalogue Catalogue
	Journal   Journal // records runs and their events
	Notices   Notices // makes deliveries of webhooks
	Audit     Audit   // records what the daemon does by itself; nil: nothing is recorded
	// Claims are those of this node in a catalogue that nodes share; nil: there is one daemon.
	Claims *claims.Claims
	// TicketKey is what the tickets of sessions are derived from, so that they work on every
	// node; nil: each session has its own secret, which ends with the daemon.
	TicketKey []byte
	// Line lets creates wait for a place on any node; nil: there is one daemon.
	Line *placement.Line
	// Extensions stores the files of uploaded extensions.
	Extensions archives.Extensions
	// Node is the node that the daemon is, if it shares its catalogue with others; nil: it
	// does not.
	Node Node
	Left rescue.Left // of a node; see [profiles.LeftStore]
	// Uploads reads what is imported.
	Uploads importer.Reader
	// MemoryAllows reports whether memory allows one more Chrome; nil: always.
	MemoryAllows func() bool
	// Large bounds how many large state documents are restored at once; nil:
	// [archives.MaxLarge].
	Large archives.Turns
	// Meter counts for metrics; nil: nothing is counted.
	Meter Meter
	Now   func() time.Time
	Log   *slog.Logger
}

// Keys are the API keys of callers; see [access.Keys].
type Keys interface {
	access.Callers
	// RegisterConnection calls end when the caller's key is deleted, until leave is called.
	RegisterConnection(ctx context.Context, c access.Caller, end func(why error)) (leave func(), err error)
	// CallContext returns a context that ends when the caller's key is deleted.
	CallContext(ctx context.Context, c access.Caller) (_ context.Context, leave func(), err error)
	// QuotasOf returns the quotas of a key; a deleted key has none.
	QuotasOf(ctx context.Context, id string) (quota.Quotas, error)
}

// Journal records the events of sessions; see [events.Journal].
type Journal interface {
	// Begin begins a session's next run.
	Begin(sessionID string) *events.Writer
	// SessionEnded reports that a session has ended; see [events.Journal.SessionEnded].
	SessionEnded(sessionID string)
	// Flush waits until a session's recorded events are on disk.
	Flush(ctx context.Context, sessionID string)
	// Followed reports whether a client follows the session's events now.
	Followed(sessionID string) bool
}

// Service creates, finds, resumes and ends sessions. Its methods are safe for concurrent
// use. The caller must call Close.
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
	undo      *undo.Keeper
	importer  *importer.Importer
	renewals  *renewal.Renewals
	rescues   *rescue.Rescues
	records   *records.Records
	inspector *inspect.Inspector
	archives  *archives.Archives
	imports   quota.Counter
	sockets   quota.Counter     // CDP clients, viewers and event streams
	rates     *quota.Rates      // of requests
	clients   *capacity.Clients // of CDP
	viewers   *capacity.Clients // of the live view
	creates   *creates          // under way, of a node
	left      *leftFiles        // of sessions that have moved, of a node
	measuring chan struct{}     // holds one token while a session's memory is measured

	// ctx is the context of the daemon's own work (saves, sessions). It ends after that
	// work has had time to end on its own.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	sessions *registry.Registry[*liveSession]
}

// New makes a Service. [Service.Recover] must run before the first request.
func New(cfg Config, deps Deps) *Service {
	s := &Service{cfg: cfg, deps: deps, rates: quota.NewRates(), clients: capacity.NewClients(cfg.MaxClients), viewers: capacity.NewViewers(),
		measuring: make(chan struct{}, 1), creates: newCreates(), left: newLeftFiles(deps.Now, deps.Log)}
	if s.deps.Meter == nil {
		s.deps.Meter = unmetered{}
	}
	if s.deps.Node == nil {
		s.deps.Node = alone{}
	}
	if s.deps.Audit == nil {
		s.deps.Audit = unaudited{}
	}
	if s.deps.MemoryAllows == nil {
		s.deps.MemoryAllows = func() bool { return true }
	}
	if s.deps.Large == nil {
		s.deps.Large = capacity.NewTurns(archives.MaxLarge)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.capacity = capacity.New[*restore.Parked](capacity.Config{
		Sessions: cfg.MaxSessions, Engine: cfg.Engine, Parked: cfg.Parked,
		Spares:  map[string]pool.Limits{browser.EngineChrome: cfg.Spares, browser.EngineShell: cfg.ShellSpares},
		Standby: cfg.Standby, StandbyDelay: cfg.StandbyDelay, Full: s.deps.Node.Changed, Now: deps.Now, Log: deps.Log,
	}, capacityAdapter{s}, deps.Catalogue)
	s.sessions = registry.New[*liveSession](s.capacity.HasParked)
	s.records = records.New(deps.Catalogue, deps.Notices)
	s.inspector = inspect.New(deps.Catalogue, Lookup{s})
	s.snapshots = library.NewSnapshots(deps.Catalogue, deps.Vault, s.capacity, deps.Log)
	if deps.Claims != nil {
		s.snapshots.UseHolds(deps.Claims)
	}
	s.pruner = library.NewPruner(library.PrunerConfig{Retention: cfg.Retention, Grace: cfg.PruneGrace, Now: deps.Now, Log: deps.Log},
		deps.Catalogue, s.snapshots, libraryAdapter{s})
	s.janitor = library.NewJanitor(library.JanitorConfig{Records: deps.Catalogue, Pruner: s.pruner,
		Turn: turn(s.deps.Node), Leftovers: nodeClaims{s}.leftovers(), Events: events.KeepFor, Answers: repeatWindow, Deliveries: events.KeepDeliveries, Now: deps.Now, Log: deps.Log})
	s.archives = archives.New(archives.Config{Vault: deps.Vault, Snapshots: s.snapshots, Datadirs: deps.Datadirs, Extensions: deps.Extensions,
		Sessions: archivesAdapter{s}, Large: s.deps.Large, Unpack: cfg.Unpack})
	s.undo = undo.New(cfg.Undo, deps.Now, deps.Log)
	s.restorer = restore.New(restore.Config{Discarded: s.undo, Now: deps.Now, Log: deps.Log}, deps.Browsers, s.capacity, s.archives, deps.Catalogue)
	s.users = settings.NewUsers(deps.Catalogue, settings.Config{Quotas: cfg.Quotas, Limits: cfg.Limits, Use: s.quotaUse, Now: deps.Now, Changed: s.settingsChanged})
	s.resolver = request.NewResolver(cfg.Engine, s.users, deps.Browsers, deps.Catalogue)
	s.checker = login.NewChecker(login.Config{Records: deps.Catalogue, Users: s.users, Sessions: loginAdapter{s.sessions, s}, Snapshots: s.snapshots,
		Restorer: s.restorer, Notices: deps.Notices, Meter: s.deps.Meter, Now: deps.Now, Log: deps.Log})
	if s.undo.On() {
		s.work.Go(func() { s.undo.Run(s.ctx) })
	}
	s.saver = save.New(save.Config{Records: deps.Catalogue, Archives: deps.Vault, Datadirs: deps.Datadirs, Snapshots: s.snapshots, Dirs: deps.Browsers,
		Restorer: s.restorer, Ready: readyAdapter{s}, Users: s.users, Login: s.checker, Undo: s.undo, Notices: deps.Notices, Meter: s.deps.Meter,
		Unpack: cfg.Unpack, RescueTTL: cfg.RescueTTL, Now: deps.Now, Log: deps.Log})
	s.importer = importer.New(importer.Config{Records: deps.Catalogue, Archives: deps.Vault, Datadirs: deps.Datadirs, Reader: deps.Uploads, Dirs: deps.Browsers, Keys: deps.Keys,
		Turns: capacity.NewTurns(importer.MaxImports), Quotas: importQuotas{s}, Saver: s.saver, Users: s.users, Login: s.checker, Unpack: cfg.Unpack, Meter: s.deps.Meter, Now: deps.Now, Log: deps.Log})
	s.renewals = renewal.New(s.ctx, renewal.Config{Records: deps.Catalogue, Archives: deps.Vault, Snapshots: s.snapshots, Pruner: s.pruner, Restorer: s.restorer,
		Engines: deps.Browsers, Datadirs: deps.Datadirs, Saver: s.saver, Checker: s.checker, Slots: s.capacity, Sessions: &scheduledChecks{Registry: s.sessions, ctx: s.ctx, claims: deps.Claims},
		MemoryAllows: s.deps.MemoryAllows, MaxSessions: cfg.MaxSessions, Patience: cfg.Waits.RenewalPatience, Between: cfg.Waits.RenewalBetween,
		Checked: s.auditLoginCheck, Turn: turn(s.deps.Node), Meter: s.deps.Meter, Now: deps.Now, Log: deps.Log})
	s.rescues = rescue.New(s.ctx, rescue.Config{NodeID: s.deps.Node.ID(), Left: deps.Left, Records: deps.Catalogue, Archives: deps.Vault, Saver: s.saver, Notices: deps.Notices, Ended: s.auditRescue, FirstPause: cfg.Waits.RescuePause, Now: deps.Now, Log: deps.Log})
	return s
}

// Close refuses new sessions, saves every live one as a rescue snapshot and ends it, ends
// the parked Chromes, and waits for all of that. If ctx ends first, the remaining
// sessions are killed unsaved, and the next start rescues their user data directories. It
// also rescues those of sessions whose save failed; that failure is returned.
func (s *Service) Close(ctx context.Context) error {
	s.sessions.Close()
	all := s.sessions.All()
	s.renewals.Stop()
	s.rescues.Stop() // saves of live sessions come first
	s.capacity.Stop()
	s.deps.Line.Close()

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
				s.deps.Log.Error("cannot save a session at shutdown; its data is kept, and the next start of the daemon saves it", "session", l.id, "error", err)
				unsaved[i] = save.Failure(err, "session "+l.id+" could not be saved; its data is kept, and the next start of the daemon saves it")
			}
		})
	}
	savers.Wait()
	s.renewals.Wait()
	s.rescues.Wait()
	err := errors.Join(errors.Join(unsaved...), s.capacity.Close(context.WithoutCancel(ctx)))
	s.cancel()
	s.work.Wait()
	s.left.close()
	return err
}

// Ready returns an error if no sessions can be created: the daemon is stopping, the node has
// no lease, or the catalogue or the store does not answer.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.sessions.WhileOpen("session.ready", func() {}); err != nil {
		return err
	}
	if err := s.deps.Node.Check(); err != nil {
		return err
	}
	return errors.Join(s.deps.Catalogue.Health(ctx), s.deps.Vault.Health(ctx))
}

// Users returns the settings of users.
func (s *Service) Users() *settings.Users { return s.users }

// Checker returns the checker of logins.
func (s *Service) Checker() *login.Checker { return s.checker }

// Inspector returns the inspector, which describes sessions.
func (s *Service) Inspector() *inspect.Inspector { return s.inspector }

// Importer returns the importer of environments that were saved elsewhere.
func (s *Service) Importer() *importer.Importer { return s.importer }

// settingsChanged applies a user's new settings.
func (s *Service) settingsChanged(userID string, now settings.Settings) {
	s.capacity.SetStandbys(userID, settings.ValueOrZero(now.Standby) > 0)
	s.renewals.SettingsChanged(userID, now)
}

// Datadirs is what sessions need of Chrome's user data directories on disk.
// browser/profile's Disk implements it.
type Datadirs interface {
	save.Datadirs
	importer.Datadirs
	archives.Datadirs
}

// Meter counts events for operators. Its methods are safe for concurrent use and do not
// wait.
type Meter interface {
	login.Meter
	save.Meter
}

// unmetered counts nothing.
type unmetered struct{}

func (unmetered) LoginChecked(login.Verdict)   {}
func (unmetered) LoginExpired()                {}
func (unmetered) Saved(save.Kind, save.Result) {}

// Counts holds numbers for metrics and tests.
type Counts struct {
	Live, Parked, Spares, Standbys, Rescuing int
	// WaitForSlot is the number of callers that wait for a session slot, of this node or of any.
	WaitForSlot int
	// WaitForRescue is the number of calls that wait for a rescue. WaitForCheck is the
	// number of creates that wait for a scheduled login check.
	WaitForRescue, WaitForCheck int
}

// Counts returns the number of live sessions, of parked, spare and standby Chromes, and
// of sessions of a dead daemon that are being rescued.
func (s *Service) Counts() Counts {
	kept := s.capacity.Counts()
	sessions := s.sessions.Counts()
	pending, waiting := s.rescues.Counts()
	return Counts{Live: sessions.Live, Parked: kept.Parked, Spares: kept.Spares, Standbys: kept.Standbys, Rescuing: pending,
		WaitForSlot: kept.Waiting + s.deps.Line.Count(), WaitForRescue: waiting, WaitForCheck: sessions.Waiting}
}

// forget removes an ended session from the live ones, which ends its tickets, and frees
// its slot.
func (s *Service) forget(l *liveSession) {
	s.deps.Journal.SessionEnded(l.id) // before another create may begin the session again
	s.sessions.Remove(l.id)
	s.capacity.ReleaseFor(l.claim)
	l.socket.end()
	s.capacity.Replenish()
}
