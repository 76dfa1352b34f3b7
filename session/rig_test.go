package session

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/profiles/sqldbtest"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/session/drive"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/files"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/inspect"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore/archives"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/snapshot/memstore"
	"github.com/stasisd/stasis/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(server.Stopping(m)) }

// patience is how long a test waits for a condition before it fails.
const patience = 20 * time.Second

var (
	alice = access.Caller{KeyID: "key-a", UserID: "alice", Rights: []access.Right{access.RightUse}}
	bob   = access.Caller{KeyID: "key-b", UserID: "bob", Rights: []access.Right{access.RightUse}}
	admin = access.Caller{KeyID: "key-r", UserID: "default", AllUsers: true, Rights: []access.Right{access.RightUse, access.RightSecrets, access.RightAdmin}}
)

var errBroken = errors.New("broken on purpose")

// rig is a Service on fakes that can be made to fail.
type rig struct {
	apiKeys *access.Keys
	*Service
	*settings.Users
	*login.Checker
	*importer.Importer
	disk         *disk
	meter        *counter
	memoryAllows func() bool // whether memory allows one more Chrome
	*agent.Notes
	*agent.Messenger
	*events.Reader
	*files.Files
	*drive.Driver
	*inspect.Inspector
	*access.TicketHolders
	deliveries *events.Deliveries
	hookURL    string // the daemon's own webhook
	documents  *agent.Documents
	masks      turns // of the readers of masked texts
	library    *library.Library
	uploaded   *library.Extensions
	readings   turns // of the library
	packages   turns
	large      turns // of restores with a large state document
	t          *testing.T
	browsers   *fakeBrowsers
	store      *faultstore.Store
	watched    *watchedStore // wraps the store
	catalogue  *brokenCatalogue
	clock      *clock
	identity   *age.X25519Identity // the first one
	keys       snapshot.Keys
	short      atomic.Bool // memory is short, if the test has the Service check it
	// Of one of several nodes; node is its handle of the catalogue.
	node         *sqldb.DB
	nodeID       string
	nodeSessions *NodeSessions
	// extensions is the folder of the extension store.
	extensions string
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	root, err := os.MkdirTemp("", "u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	db := sqldbtest.Open(t, time.Now)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	watched := &watchedStore{Store: memstore.New(0, time.Now)}
	r := &rig{t: t, browsers: newFakeBrowsers(t, root+"/run"), store: faultstore.New(watched), watched: watched,
		catalogue: &brokenCatalogue{}, clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		meter: &counter{}, disk: &disk{}, identity: identity, keys: snapshot.NewKeys(identity, [32]byte{1}), extensions: root + "/extensions"}
	r.catalogue.use(db)
	r.memoryAllows = func() bool { return !r.short.Load() }
	r.Service = r.daemon(change)
	return r
}

// daemon makes a Service on the rig's disk, store and catalogue. It is closed at the end
// of the test and must then leave no Chrome.
func (r *rig) daemon(change func(*Config)) *Service {
	cfg := Config{MaxSessions: 20, Parked: pool.Limits{Size: 4, Age: time.Hour}, RescueTTL: 24 * time.Hour,
		Unpack: snapshot.Limits{Entries: 1000, Bytes: 1 << 30}, Savers: 2,
		Waits: Waits{RescuePause: time.Millisecond, RenewalBetween: time.Millisecond}}
	if change != nil {
		change(&cfg)
	}
	store, err := extension.OpenStore(r.extensions, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.apiKeys = access.NewKeys(r.catalogue, r.clock.now)
	log := slog.New(slog.DiscardHandler)
	options, ours, ticketKey := snapshot.Options{Now: r.clock.now}, (*claims.Claims)(nil), []byte(nil)
	if r.node != nil {
		options.Uses, ours, ticketKey = r.node.Claims, claims.New(r.node.Claims, time.Millisecond, log), []byte("shared")
	}
	vault := snapshot.NewVault(r.store, r.keys, options)
	journal := events.NewJournal(r.catalogue, vault, r.clock.now, log)
	r.masks = capacity.NewTurns(events.MaxMasking)
	r.large = capacity.NewTurns(archives.MaxLarge)
	notices := events.NewNotices(events.NoticesConfig{URL: r.hookURL, Session: answer.HookSession, Now: r.clock.now})
	deps := Deps{Claims: ours, TicketKey: ticketKey, Journal: journal, Notices: notices, Keys: r.apiKeys, Extensions: store, Browsers: r.browsers, Datadirs: r.disk, Uploads: uploads{r.disk}, Vault: vault,
		Catalogue: r.catalogue.forService(), Large: turnsAt{&r.large}, Meter: r.meter, MemoryAllows: func() bool { return r.memoryAllows() }, Now: r.clock.now, Log: log}
	if r.node != nil {
		deps.Node, deps.Left = member(r.nodeID), r.node.Left
	}
	s := New(cfg, deps)
	r.Users, r.Checker, r.Importer = s.Users(), s.Checker(), s.Importer()
	masks := turnsAt{&r.masks}
	r.Driver, r.Inspector, r.TicketHolders = drive.New(s.Lookup()), s.Inspector(), access.NewTicketHolders(r.apiKeys, s.Lookup(), time.Now)
	r.Messenger = agent.NewMessenger(agent.MessengerConfig{Sessions: s.Lookup(), Driver: r.Driver, Store: r.catalogue, Tasks: r.catalogue, Notices: notices, Masks: masks, Now: r.clock.now})
	r.deliveries = events.NewDeliveries(r.catalogue, notices.Wake, r.clock.now)
	r.Reader = events.NewReader(events.ReaderConfig{Journal: journal, Store: r.catalogue, Sessions: s.Lookup(), Keys: r.apiKeys, Masks: masks})
	r.Files = files.New(s.Lookup(), r.apiKeys)
	r.Notes = agent.NewNotes(s.Lookup(), r.catalogue, r.clock.now)
	r.documents = agent.NewDocuments(s.Lookup(), snapshot.NewDocuments(r.store, snapshot.Options{Now: r.clock.now}))
	r.readings, r.packages = capacity.NewTurns(library.MaxReadings), capacity.NewTurns(library.MaxExtensionChecks)
	r.library = library.New(library.Deps{Records: r.catalogue, Defaults: r.catalogue, Snapshots: s.Snapshots(), Archives: vault, Sessions: s.ForLibrary(), Keys: r.apiKeys,
		Readings: turnsAt{&r.readings}, Now: r.clock.now, Log: log})
	r.uploaded = library.NewExtensions(library.ExtensionDeps{Records: r.catalogue, Files: store, Keys: r.apiKeys, Checks: turnsAt{&r.packages}, Now: r.clock.now})
	r.t.Cleanup(func() {
		r.browsers.works()
		r.store.FailAt(0, faultstore.Refuse, nil)
		r.catalogue.works()
		if err := s.Close(context.Background()); err != nil {
			r.t.Errorf("Close: %v", err)
		}
		for _, c := range r.browsers.all() {
			if !c.dead() {
				r.t.Errorf("the Chrome in %s still runs", c.dir.Name())
			}
		}
	})
	return s
}

// turns bounds how many costly calls run at once; see [capacity.Turns].
type turns interface {
	Take(ctx context.Context, userID string) (leave func(), err error)
}

// turnsAt is a turns that a test can replace.
type turnsAt struct{ at *turns }

func (t turnsAt) Take(ctx context.Context, userID string) (func(), error) {
	return (*t.at).Take(ctx, userID)
}

// watchedStore is a store that notifies a test when an archive is opened.
type watchedStore struct {
	snapshot.Store
	full   atomic.Bool // the store has no space
	mu     sync.Mutex
	opened func()
}

func (w *watchedStore) FreeSpace(ctx context.Context) (int64, error) {
	if w.full.Load() {
		return 0, nil
	}
	return w.Store.FreeSpace(ctx)
}

// onArchive calls do once, when the next archive is opened.
func (w *watchedStore) onArchive(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = do
}

func (w *watchedStore) Open(ctx context.Context, key snapshot.Key) (io.ReadCloser, error) {
	if strings.HasPrefix(key.String(), snapshot.ArchiveFolder().String()+"/") {
		w.mu.Lock()
		do := w.opened
		w.opened = nil
		w.mu.Unlock()
		if do != nil {
			do()
		}
	}
	return w.Store.Open(ctx, key)
}

// clock advances a millisecond at each reading, and otherwise only when a test moves it.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { return c.add(time.Millisecond) }

func (c *clock) add(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return c.at
}

// Key also returns the keys of the tests' callers, which are not recorded.
func (b *brokenCatalogue) Key(ctx context.Context, id string) (profiles.Key, error) {
	for _, c := range []access.Caller{alice, bob, admin} {
		if c.KeyID == id {
			k := profiles.Key{ID: id, UserID: c.UserID, AllUsers: c.AllUsers}
			for _, right := range c.Rights {
				k.Rights = append(k.Rights, string(right))
			}
			return k, nil
		}
	}
	if strings.HasPrefix(id, "key-") {
		return profiles.Key{ID: id}, nil
	}
	return b.KeyStore.Key(ctx, id)
}

// disk is Chrome's user data directories; reading them can be made to time out.
type disk struct {
	profile.Disk
	slow atomic.Bool
}

// uploads reads what is imported in this process. A daemon has it read by one without rights.
type uploads struct{ *disk }

func (u uploads) Read(ctx context.Context, r importer.ReadRequest, upload *os.File, dir *browser.Dir) (importer.Found, error) {
	return importer.Read(ctx, u.disk, r, upload, dir.Profile())
}

func (d *disk) Inspect(ctx context.Context, userDataDir string, doc state.Document) (browser.Survey, error) {
	if d.slow.Load() {
		return browser.Survey{}, context.DeadlineExceeded
	}
	return d.Disk.Inspect(ctx, userDataDir, doc)
}

// brokenCatalogue is a catalogue whose writes, and reading of users, can be made to fail.
type brokenCatalogue struct {
	Catalogue
	profiles.KeyStore
	profiles.ExtensionStore
	profiles.RunStore
	profiles.EventStore
	profiles.MessageStore
	profiles.NoteStore
	profiles.DeliveryStore
	profiles.WebhookSecretStore
	mu     sync.Mutex
	broken map[string]error  // by method
	hooks  map[string]func() // by method, each called once
}

// use makes it the catalogue of a database.
func (b *brokenCatalogue) use(db *sqldb.DB) {
	b.Catalogue = Catalogue{
		SessionStore: db.Sessions, SnapshotStore: db.Snapshots, RetentionStore: db.Snapshots, DefaultStore: db.Defaults,
		UserStore: db.Users, UploadedExtensions: db.Extensions, NoteWriter: db.Notes, RunRecords: db.Runs,
		AnswerRecords: db.Answers, DeliveryRecords: db.Deliveries, Database: db,
	}
	b.KeyStore, b.ExtensionStore, b.RunStore, b.EventStore = db.Keys, db.Extensions, db.Runs, db.Runs
	b.MessageStore, b.NoteStore, b.DeliveryStore = db.Messages, db.Notes, db.Deliveries
	b.WebhookSecretStore = db.Receivers
}

// resumes resumes a session.
func (r *rig) resumes(ctx context.Context, c access.Caller, id string) (answer.Acknowledgement, error) {
	return r.Resume(ctx, c, id, "")
}

// forService returns the part of the catalogue that a Service uses.
func (b *brokenCatalogue) forService() Catalogue {
	return Catalogue{
		SessionStore: b, SnapshotStore: b, RetentionStore: b, DefaultStore: b, UserStore: b, NoteWriter: b, UploadedExtensions: b,
		RunRecords: b, AnswerRecords: b, DeliveryRecords: b, Database: b,
	}
}

func (b *brokenCatalogue) fails(err error, methods ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = map[string]error{}
	for _, m := range methods {
		b.broken[m] = err
	}
}

func (b *brokenCatalogue) works() { b.fails(nil) }

func (b *brokenCatalogue) err(method string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken[method]
}

func (b *brokenCatalogue) Commit(ctx context.Context, c profiles.Commit) (profiles.MoveResult, error) {
	if err := b.err("Commit"); err != nil {
		return profiles.MoveResult{}, err
	}
	b.hook("Commit")
	return b.Catalogue.Commit(ctx, c)
}

func (b *brokenCatalogue) Note(ctx context.Context, userID, sessionID string) (profiles.Note, error) {
	if err := b.err("Note"); err != nil {
		return profiles.Note{}, err
	}
	return b.NoteStore.Note(ctx, userID, sessionID)
}

func (b *brokenCatalogue) AddMessage(ctx context.Context, m profiles.Message, now profiles.Execution) (profiles.Message, error) {
	b.hook("AddMessage")
	return b.MessageStore.AddMessage(ctx, m, now)
}

// once calls do once: after the next CreateSession, Default or Snapshot, or before the next
// RetireSnapshot, Commit, AddMessage, UpdateSession or EndRun.
func (b *brokenCatalogue) once(method string, do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hooks = map[string]func(){method: do}
}

func (b *brokenCatalogue) hook(method string) {
	b.mu.Lock()
	do := b.hooks[method]
	delete(b.hooks, method)
	b.mu.Unlock()
	if do != nil {
		do()
	}
}

func (b *brokenCatalogue) Default(ctx context.Context, userID string) (profiles.Default, error) {
	defer b.hook("Default")
	return b.Catalogue.Default(ctx, userID)
}

func (b *brokenCatalogue) Snapshot(ctx context.Context, id string) (profiles.Snapshot, error) {
	defer b.hook("Snapshot")
	return b.Catalogue.Snapshot(ctx, id)
}

func (b *brokenCatalogue) RetireSnapshot(ctx context.Context, id string) (bool, error) {
	b.hook("RetireSnapshot")
	return b.Catalogue.RetireSnapshot(ctx, id)
}

func (b *brokenCatalogue) User(ctx context.Context, id string) (profiles.User, error) {
	if err := b.err("User"); err != nil {
		return profiles.User{}, err
	}
	return b.Catalogue.User(ctx, id)
}

func (b *brokenCatalogue) CreateSession(ctx context.Context, s profiles.Session) error {
	if err := b.err("CreateSession"); err != nil {
		return err
	}
	defer b.hook("CreateSession")
	return b.Catalogue.CreateSession(ctx, s)
}

func (b *brokenCatalogue) UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error) {
	if err := b.err("UpdateSession"); err != nil {
		return profiles.Session{}, err
	}
	b.hook("UpdateSession")
	return b.Catalogue.UpdateSession(ctx, id, change)
}

func (b *brokenCatalogue) EndRun(ctx context.Context, e profiles.RunEnd, keep profiles.EventBounds) (profiles.Run, error) {
	if err := b.err("EndRun"); err != nil {
		return profiles.Run{}, err
	}
	b.hook("EndRun")
	return b.Catalogue.EndRun(ctx, e, keep)
}

func (b *brokenCatalogue) EndSession(ctx context.Context, e profiles.End) error {
	if err := b.err("EndSession"); err != nil {
		return err
	}
	return b.Catalogue.EndSession(ctx, e)
}

// newCreate returns a create with the documented defaults.
func newCreate(change func(*request.Create)) request.Create {
	c := request.Create{AgentName: "agi-0", AllowMemory: true, RestoreTabs: true, Idle: time.Hour, Lifetime: time.Hour}
	if change != nil {
		change(&c)
	}
	return c
}

func (r *rig) create(c access.Caller, change func(*request.Create)) answer.Info {
	r.t.Helper()
	info, err := r.Create(r.t.Context(), c, newCreate(change))
	if err != nil {
		r.t.Fatal(err)
	}
	return info
}

// end ends a session and fails the test if that fails.
func (r *rig) end(c access.Caller, id string, asked request.End) save.EndAnswer {
	r.t.Helper()
	a, err := r.End(r.t.Context(), c, id, asked)
	if err != nil {
		r.t.Fatal(err)
	}
	if !a.Deleted || (asked.Mode != save.None) != (a.Snapshot != nil) {
		r.t.Fatalf("end: %+v", a)
	}
	return a
}

// saved makes and saves a session of the caller, and returns the IDs of the session and
// the snapshot.
func (r *rig) saved(c access.Caller, asked request.End) (session, snap string) {
	r.t.Helper()
	id := r.create(c, nil).ID
	return id, r.end(c, id, asked).Snapshot.ID
}

var (
	none       = request.End{Mode: save.None, Conflict: save.Keep}
	filesystem = request.End{Mode: save.Filesystem, Conflict: save.Keep}
	memory     = request.End{Mode: save.Memory, Conflict: save.Keep}
	asDefault  = request.End{Mode: save.Filesystem, SaveAsDefault: true, Conflict: save.Keep}
)

// status waits until the session and its record have the same status, and returns it.
func (r *rig) status(id string) (status profiles.Status) {
	r.t.Helper()
	await(r.t, "session "+id+" and its record have the same status", func() bool {
		rec, err := r.catalogue.Session(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		info, err := r.Get(r.t.Context(), admin, id)
		if err != nil {
			r.t.Fatal(err)
		}
		status = info.Status
		return rec.Status == status
	})
	return status
}

// wantSnapshots fails the test unless exactly these snapshots exist, complete, and the
// store has no other archive.
func (r *rig) wantSnapshots(snapshots ...string) {
	r.t.Helper()
	ctx := r.t.Context()
	var archives, documents []string
	locations := map[snapshot.Location]bool{}
	for _, id := range snapshots {
		row, err := r.catalogue.Snapshot(ctx, id)
		if err != nil {
			r.t.Errorf("snapshot %s: %v", id, err)
			continue
		}
		locations[library.LocationOf(row.UserID, row.SessionID)] = true
		saved, err := r.deps.Vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), id)
		if err == nil {
			err = r.deps.Vault.Verify(ctx, saved)
		}
		if err != nil {
			r.t.Errorf("snapshot %s: %v", id, err)
		}
		archives = append(archives, row.ArchiveID)
	}
	stored, err := r.store.List(ctx, snapshot.ArchiveFolder(), 1000, "")
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(archives)
	if diff := cmp.Diff(slices.Compact(archives), stored); diff != "" {
		r.t.Errorf("archives (-committed +stored):\n%s", diff)
	}
	sessions, _, err := r.catalogue.Sessions(ctx, profiles.SessionFilter{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range sessions {
		ids, _, err := r.deps.Vault.List(ctx, library.LocationOf(s.UserID, s.ID), 1000, "")
		if err != nil {
			r.t.Fatal(err)
		}
		documents = append(documents, ids...)
	}
	slices.Sort(documents)
	want := slices.Sorted(slices.Values(snapshots))
	if diff := cmp.Diff(want, documents); diff != "" {
		r.t.Errorf("documents (-committed +stored):\n%s", diff)
	}
}

// dirs returns the number of run directories.
func (r *rig) dirs() int {
	r.t.Helper()
	entries, err := os.ReadDir(r.browsers.launcher.Root())
	if err != nil {
		r.t.Fatal(err)
	}
	return len(entries)
}
