//go:build linux

package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/stasisd/stasis/api"
	"github.com/stasisd/stasis/api/metrics"
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/budget"
	"github.com/stasisd/stasis/confine"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/drive"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/files"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/undo"
	"github.com/stasisd/stasis/snapshot"
)

const (
	// undoCount and undoBytes bound the profiles that --undo-window keeps.
	undoCount = 16
	undoBytes = 1 << 30
	// maxUndoWindow bounds --undo-window: a kept profile is a credential.
	maxUndoWindow = 24 * time.Hour
	// minKey is the minimum length of the operator's own first key.
	minKey = 16
)

// standbyDelay is how long after a create no Chrome is started to be a standby. In that time the
// client connects and loads its page.
const standbyDelay = 500 * time.Millisecond

// daemon is everything that runs, connected.
type daemon struct {
	*storage
	apiKeys *access.Keys
	service *session.Service
	server  *api.Server
	self    *node // nil: it is no node
	first   firstKey
	closers []func() error
	// chromesEnded: no Chrome runs any more, so the rules for their addresses and their control
	// groups can go.
	chromesEnded bool
	started      bool // start has returned the daemon
}

// start connects the packages. listener is the address at which the daemon listens. start
// takes the data directory, opens catalogue and store, starts Chrome once as a test, and
// recovers what a dead daemon left.
func start(ctx context.Context, c *serveCmd, listener net.Addr, log *slog.Logger) (_ *daemon, err error) {
	d := &daemon{}
	defer func() {
		if err != nil {
			d.chromesEnded = d.service == nil // else it is closed first, and says so
			err = errors.Join(err, d.close())
		}
	}()
	d.storage, err = c.acquire()
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, d.storage.close)
	policy := c.egressPolicy(listener)
	limiter, err := c.limiter(ctx, policy, log)
	if err != nil {
		return nil, err
	}
	if limiter.limits() {
		watching, stop := context.WithCancel(context.WithoutCancel(ctx))
		var watch sync.WaitGroup
		watch.Go(func() { limiter.keep(watching, log) })
		d.closers = append(d.closers, func() error {
			stop()
			watch.Wait()
			return limiter.close(d.chromesEnded)
		})
	}
	groups, err := c.groups(d.dir, log)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, func() error {
		if !d.chromesEnded {
			return nil
		}
		return groups.Close()
	})
	deadline := c.deadline()
	launcher, err := launch.New(launch.Config{Deadline: deadline, Groups: groups, Files: uint64(c.SessionFiles), //nolint:gosec // check refuses negative numbers
		Binary: c.Chrome, Shell: c.Shell, Root: filepath.Join(d.dir, runFolder),
		UIDs: launch.UIDRange{Base: c.UIDBase, Count: c.UIDCount}, NoLandlock: c.NoLandlock, Networks: limiter.networks})
	if err != nil {
		return nil, err
	}
	preflight := launcher.Preflight
	if c.NoPreflight {
		preflight = launcher.Check
	}
	chrome, err := preflight(ctx)
	if err != nil {
		return nil, err
	}
	log.Info("Chrome is ready", "version", chrome.Full, "binary", launcher.Binary(), "landlock_abi", launcher.Landlock())
	if c.NoLandlock {
		log.Warn("Landlock is off (--no-landlock): pages can read every file that Chrome's user can read")
	}
	if err := c.logShell(launcher, log); err != nil {
		return nil, err
	}

	confiner, err := confine.New(ctx, c.UIDBase, log)
	if err != nil {
		return nil, err
	}
	logUploads(confiner.Layers(), log)

	database, err := c.database(d.storage)
	if err != nil {
		return nil, err
	}
	d.node = c.on()
	if err := d.open(ctx, database); err != nil {
		return nil, err
	}
	db := d.catalogue
	var self *node // it leaves last: after that, this daemon can write nothing
	d.closers = append(d.closers, func() error { return self.close(context.WithoutCancel(ctx), d.chromesEnded) })
	if database == sqldb.Memory {
		log.Warn("the catalogue is in memory (--database :memory:): when the daemon stops, all sessions, keys and defaults are lost, and its snapshots cannot be restored")
	}
	audit, err := c.openAudit(ctx, db, log)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, func() error { return audit.Close(context.WithoutCancel(ctx)) })
	d.logStore(log)
	d.logKeys(log)
	limits, err := c.limits()
	if err != nil {
		return nil, err
	}
	if len(d.keys.IdentityRecipients()) == 0 {
		limits.Standby.Size = 0 // nothing can be restored into a standby
	}
	log.Info("the limits in use", append([]any{"max_sessions", limits.MaxSessions, "parked", limits.Parked.Size, "parked_memory", limits.Parked.Memory,
		"spares", limits.Spares.Size, "shell_spares", limits.ShellSpares.Size, "standby", limits.Standby.Size},
		inForce(limits.Limits, groups != nil, groups != nil && groups.HasCPU(), os.Geteuid() == 0)...)...)
	secret, err := c.secret(d.dir)
	if err != nil {
		return nil, err
	}
	receivers := c.receivers(secret, db.Receivers, d.vault)
	sender, stop := c.sender(ctx, receivers, policy, db.Deliveries, log)
	d.closers = append(d.closers, stop)
	counted := metrics.New(version)
	starter := browser.NewStarter(launcher, time.Now)
	starter.Limits = limits.Limits
	starter.Budget, starter.MaxDownloads = budget.New(c.ClientMemory), c.MaxDownloads
	if limiter.limits() {
		starter.Policy, starter.Hosts = policy, c.hosts(limiter.canRedirect, policy)
	}
	if limiter.firewall != nil {
		starter.Firewall = limiter.firewall
	}
	d.apiKeys = access.NewKeys(db.Keys, time.Now)
	journal := events.NewJournal(db.Runs, d.vault, time.Now, log)
	notices := events.NewNotices(events.NoticesConfig{URL: string(c.WebhookURL), Session: answer.HookSession, Wake: sender.Wake, Now: time.Now})
	own := d.fingerprints(secret)
	self, err = c.join(ctx, d.storage, d.facts(engines(launcher, chrome), limits.MaxSessions, own), own, deadline, log)
	if err != nil {
		return nil, err
	}
	shared := d.share(ctx, self.id(), log)
	extensions, err := d.extensions(ctx, log)
	if err != nil {
		return nil, err
	}
	deps := session.Deps{
		Claims: shared.claims, TicketKey: shared.ticketKey, Line: shared.line,
		Keys:      d.apiKeys,
		Browsers:  browsers.Chromes{Starter: starter},
		Datadirs:  profile.Disk{},
		Uploads:   importer.Child{Confiner: confiner},
		Vault:     d.vault,
		Journal:   journal,
		Notices:   notices,
		Audit:     audit,
		Catalogue: sessionCatalogue(db), Extensions: extensions, MemoryAllows: memoryForChrome, Now: time.Now, Log: log,
		Meter: counted,
	}
	self.join(&deps)
	d.service = session.New(limits, deps)
	checked := library.NewExtensions(library.ExtensionDeps{Records: db.Extensions, Files: extensions, Keys: d.apiKeys,
		Checks: capacity.NewTurns(library.MaxExtensionChecks), Now: time.Now})
	kept := library.New(library.Deps{
		Records: db.Snapshots, Defaults: db.Defaults, Snapshots: d.service.Snapshots(), Archives: d.vault, Sessions: d.service.ForLibrary(), Keys: d.apiKeys,
		Readings: capacity.NewTurns(library.MaxReadings), Now: time.Now, Log: log,
	})
	counted.AddSources(metrics.Sources{Places: d.places(c.nodeFlags, launcher), EgressRefused: limiter.refused(), Counts: d.service.Counts, ClientMemory: starter.Budget.Use, Deliveries: func(ctx context.Context) (pending, failed int, err error) {
		counts, err := db.Deliveries.CountDeliveries(ctx)
		return counts[profiles.DeliveryPending], counts[profiles.DeliveryFailed], err
	}})
	// These closers run only if the start fails; otherwise serve closes the service first.
	d.closers = append(d.closers, func() error {
		closed := d.service.Close(context.WithoutCancel(ctx))
		if !d.started {
			d.chromesEnded = closed == nil
		}
		return closed
	})
	if err := d.service.Recover(ctx); err != nil {
		return nil, err
	}
	if err := d.makeFirstKey(ctx); err != nil {
		return nil, err
	}
	public, err := c.PublicURL.parse("--public-url")
	if err != nil {
		return nil, err
	}
	sessions, masks := d.service.Lookup(), capacity.NewTurns(events.MaxMasking)
	driver := drive.New(sessions)
	cluster, err := d.cluster(c.nodeFlags, shared, sessions, log)
	if err != nil {
		return nil, err
	}
	self.begin(d.service, cluster, log)
	d.self = self
	d.server = api.New(api.Options{
		HashKey:  d.keys.Derive("request hashes"),
		Sessions: d.service, Inspector: d.service.Inspector(), Checkpoints: d.service, Controls: d.service, Driver: driver, CDP: d.service, Streams: d.service, Rates: d.service, Files: files.New(sessions, d.apiKeys), Sharing: d.service,
		Snapshots: kept, Exports: kept, Importer: d.service.Importer(), Pruner: d.service.Pruner(),
		Defaults: kept, Logins: d.service.Checker(), Settings: d.service.Users(), Extensions: checked,
		Keys: d.apiKeys, SessionTickets: access.NewTicketHolders(d.apiKeys, sessions, time.Now), Readiness: d.service, Lease: self.lease(), Answers: answers{db.Answers}, Audit: audit,
		Notes:          agent.NewNotes(sessions, db.Notes, time.Now),
		Documents:      agent.NewDocuments(sessions, snapshot.NewDocuments(d.store, snapshot.Options{Now: time.Now})),
		Messenger:      agent.NewMessenger(agent.MessengerConfig{Sessions: sessions, Driver: driver, Store: db.Messages, Tasks: db.Sessions, Notices: notices, Masks: masks, Now: time.Now}),
		History:        events.NewReader(events.ReaderConfig{Journal: journal, Store: db.Runs, Sessions: sessions, Keys: d.apiKeys, Masks: masks}),
		Deliveries:     events.NewDeliveries(db.Deliveries, sender.Wake, time.Now),
		WebhookSecrets: receivers,
		Metrics:        counted.Handler(), Logger: log, Now: time.Now,
		Nodes: placement.NewAdmin(db.Nodes, self.id()), Cluster: cluster, DirectURL: c.direct(),
		PublicURL: public, TrustedProxies: c.TrustedProxy,
		Landlock: launcher.Landlock(), EgressLimited: limiter.limits(), Limits: groups != nil, UploadsConfined: len(confiner.Layers().Missing()) == 0, WarnUnknownFields: c.UnknownFields == "warn", MaxUpload: c.MaxUpload, MaxImport: c.MaxUnpack, MaxMessage: int64(c.MaxMessage),
		MaxConnections: c.connections(log), Budget: starter.Budget, Patience: c.ClientPatience})
	d.started = true
	return d, nil
}

// engines returns the version of each engine's binary; that of the shell is known if a
// preflight has tried it.
func engines(l *launch.Launcher, chrome launch.Version) map[string]string {
	all := map[string]string{browser.EngineChrome: chrome.Full}
	if l.HasShell() == nil {
		all[browser.EngineShell] = chrome.Full
	}
	return all
}

// logKeys logs the recipients that snapshots are sealed to. It warns if there is no
// identity to restore them with.
func (d *daemon) logKeys(log *slog.Logger) {
	if len(d.keys.IdentityRecipients()) == 0 {
		log.Warn("no identity is configured: this daemon can save but not restore; to restore, give --identity-file, --identity-command or STASIS_IDENTITY", "sealed_to", d.keys.Recipients())
		return
	}
	log.Info("new snapshots are sealed to the keys in `to`; this daemon opens snapshots that are sealed to the keys in `opens`", "to", d.keys.Recipients(), "opens", d.keys.IdentityRecipients())
}

// logStore logs where snapshots are stored. It warns if they are lost when the daemon
// stops.
func (d *daemon) logStore(log *slog.Logger) {
	if d.at.memory {
		log.Warn("snapshots are kept in memory: they are lost when the daemon stops")
		return
	}
	log.Info("the daemon stores snapshots in this place", "in", d.at.String())
}

// logUploads logs what restricts the processes that read uploads, and warns of what does not.
func logUploads(layers confine.Layers, log *slog.Logger) {
	if missing := layers.Missing(); len(missing) > 0 {
		log.Warn("this system does not restrict processes that read uploads as it should: a file made to attack them gets more rights", "missing", missing)
		return
	}
	log.Info("uploads are read by processes without rights", "landlock_abi", layers.Landlock)
}

// logShell logs whether there is a headless shell. The daemon works without one unless the
// shell is the engine of all sessions.
func (c *serveCmd) logShell(launcher *launch.Launcher, log *slog.Logger) error {
	err := launcher.HasShell()
	switch {
	case err == nil:
		log.Info("the headless shell is ready", "binary", launcher.Shell())
	case c.Engine == browser.EngineShell:
		return fault.Wrap(err, fault.ChromeMissing, "serve.engine", "--"+fault.MessageOf(err))
	default:
		log.Info("no headless shell was found; sessions with engine shell are refused")
	}
	return nil
}

// makeFirstKey makes sure that there is a first API key: the operator's from STASIS_API_KEY,
// else one that the daemon makes.
func (d *daemon) makeFirstKey(ctx context.Context) error {
	const op = "serve.key"
	if given := os.Getenv(keyVariable); given != "" {
		d.first.place = keyVariable
		return d.apiKeys.SetFirst(ctx, given)
	}
	file := filepath.Join(d.dir, keyFile)
	raw, err := os.ReadFile(file)
	secret := strings.TrimSpace(string(raw))
	// A first key that was deleted is not made again.
	if has, err := d.apiKeys.Any(ctx); has || err != nil {
		if d.apiKeys.Is(ctx, secret) {
			d.first.place = file
		}
		return err
	}
	switch {
	case err == nil && len(secret) < minKey:
		return fault.New(fault.Config, op, "%s: contains no valid key; remove the file, and the next start makes a new key", file)
	case err == nil:
		return d.apiKeys.SetFirst(ctx, secret)
	case !errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.Config, op, "the file of the API key cannot be read")
	}
	made := access.NewSecret()
	// The write is atomic: an empty file would lock everyone out.
	if err := renameio.WriteFile(file, []byte(made+"\n"), 0o600); err != nil {
		return fault.Wrap(err, fault.Config, op, "the file of the API key cannot be written")
	}
	d.first = firstKey{place: file, made: made}
	return d.apiKeys.SetFirst(ctx, made)
}

// quotas returns the quotas of users whose settings have none.
func (c *serveCmd) quotas() (quota.Quotas, error) {
	return quotasOf("--default-quota", c.DefaultQuota)
}

// limits returns the service's settings and computes those that no flag sets.
func (c *serveCmd) limits() (session.Config, error) {
	n, parked := c.MaxSessions, c.Parked
	if n <= 0 {
		memory, err := availableMemory()
		if err != nil {
			return session.Config{}, fault.Wrap(err, fault.Config, "serve.limits", "the memory of the machine cannot be determined; give --max-sessions")
		}
		n = sessionsIn(memory)
		if parked < 0 {
			parked = n / 5
		}
		n = max(n-parked, 1) // parked Chromes keep their memory
	}
	if parked < 0 {
		parked = max(n/4, 1)
	}
	spares := func(asked int) pool.Limits {
		if asked < 0 {
			asked = sparesFor(runtime.NumCPU(), n)
		}
		return pool.Limits{Size: asked, Age: c.SpareAge}
	}
	quotas, err := c.quotas()
	if err != nil {
		return session.Config{}, err
	}
	return session.Config{Engine: c.Engine, MaxSessions: n, Quotas: quotas, Limits: c.sessionLimits(), MaxClients: c.MaxClients, Parked: pool.Limits{Size: parked, Age: c.ParkedAge, Memory: c.ParkedMemory.of(parked)},
		Spares: spares(c.Spares), ShellSpares: spares(c.ShellSpares),
		Standby: pool.Limits{Size: c.Standby, Age: c.SpareAge}, StandbyDelay: standbyDelay,
		Undo:      undo.Limits{Window: c.UndoWindow, Count: undoCount, Bytes: undoBytes},
		RescueTTL: c.RescueTTL, Retention: c.retention(), PruneGrace: c.PruneGrace, Unpack: snapshot.Limits{Entries: 1 << 20, Bytes: c.MaxUnpack, Names: 128 << 20}, Savers: 4}, nil
}

// close closes what start opened, in reverse order. It is idempotent.
func (d *daemon) close() error {
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	d.closers = nil
	return errors.Join(errs...)
}

// sessionCatalogue returns the part of the catalogue that sessions use.
func sessionCatalogue(db *sqldb.DB) session.Catalogue {
	return session.Catalogue{
		SessionStore: db.Sessions, SnapshotStore: db.Snapshots, RetentionStore: db.Snapshots, DefaultStore: db.Defaults,
		UserStore: db.Users, NoteWriter: db.Notes, UploadedExtensions: db.Extensions, RunRecords: db.Runs, AnswerRecords: db.Answers,
		DeliveryRecords: db.Deliveries, Database: db,
	}
}
