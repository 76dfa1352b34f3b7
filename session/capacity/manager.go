// Package capacity bounds how many sessions live at once, and keeps Chromes ready for the
// next ones.
//
// Each session takes a slot. The free slots bound how many Chromes are kept ready:
// spares, which are empty, and standbys, which hold a user's default environment. Parked
// Chromes are frozen Chromes of memory snapshots. They take memory but no slot. A
// [Manager] hands kept Chromes out and ends them; only its caller knows what they are.
package capacity

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/quota"
)

// Config configures a Manager.
type Config struct {
	Sessions int                    // sessions that may live at once
	Engine   string                 // the engine of sessions that name none; "": browser.EngineChrome
	Parked   pool.Limits            // of parked Chromes
	Spares   map[string]pool.Limits // of spares, by engine
	Standby  pool.Limits            // of standbys
	// StandbyDelay is how long no standby is started after [Manager.ReplenishLater].
	StandbyDelay time.Duration
	// Full is called when the last free slot is taken, and when a slot is free again. It must
	// not block. nil: nothing is called.
	Full func()
	Now  func() time.Time
	Log  *slog.Logger
}

// Sessions is what a Manager needs of the sessions that it serves. S is a spare, B a
// standby.
type Sessions[S, B pool.Chrome] interface {
	// StartSpare starts an empty Chrome of an engine.
	StartSpare(ctx context.Context, engine string) (S, error)
	// StartStandby starts a Chrome that holds a snapshot's environment.
	StartStandby(ctx context.Context, snap profiles.Snapshot, engine string) (B, error)
	// StandbySettings returns a user's settings of standbys of a default.
	StandbySettings(ctx context.Context, userID string, current profiles.Snapshot) (StandbySettings, error)
	// Creating reports whether a create is under way.
	Creating() bool
	// MemoryAllows reports whether memory allows one more Chrome.
	MemoryAllows() bool
}

// Catalogue looks up the environments that standbys hold.
type Catalogue interface {
	Default(ctx context.Context, userID string) (profiles.Default, error)
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	SnapshotExtensions(ctx context.Context, snapshotID string) ([]profiles.PinnedExtension, error)
}

// Manager hands out slots and kept Chromes. P is a parked Chrome, S a spare, B a standby.
// Its methods are safe for concurrent use. The caller must call Stop and then Close.
type Manager[P pool.MeasuredChrome, S, B pool.Chrome] struct {
	sessions Sessions[S, B]
	log      *slog.Logger
	slots    *slots
	parked   *pool.Parked[P]
	spares   *spares[S]
	standbys *standbys[S, B]
}

// New makes a Manager that keeps no Chrome yet. It starts spares at the first Replenish,
// and standbys when the first user needs one.
func New[P pool.MeasuredChrome, S, B pool.Chrome](cfg Config, sessions Sessions[S, B], catalogue Catalogue) *Manager[P, S, B] {
	m := &Manager[P, S, B]{sessions: sessions, log: cfg.Log, slots: newSlots(cfg.Sessions, cfg.Full), parked: pool.NewParked[P](cfg.Parked)}
	m.spares = newSpares(cfg.Spares, cmp.Or(cfg.Engine, browser.EngineChrome), m.spareLimit, sessions.StartSpare, cfg.Log)
	m.standbys = newStandbys(cfg, m, sessions, catalogue)
	return m
}

// Stop refuses further callers of Acquire. It ends the spares and standbys, also those
// that are starting, and waits until they have ended.
func (m *Manager[P, S, B]) Stop() {
	m.slots.close()
	m.standbys.close()
	m.spares.close()
}

// Close ends the parked Chromes and waits until they have ended. It is called last,
// because sessions that end after Stop may still park their Chromes.
func (m *Manager[P, S, B]) Close(ctx context.Context) error { return m.parked.Close(ctx) }

// Counts holds numbers for metrics and tests.
type Counts struct {
	Parked, Spares, Standbys int
	Waiting                  int // callers of Acquire that wait for a slot
}

// Counts returns how many Chromes are kept and how many callers wait for a slot.
func (m *Manager[P, S, B]) Counts() Counts {
	return Counts{Parked: m.parked.Len(), Spares: m.spares.len(), Standbys: m.standbys.ready.Len(), Waiting: m.slots.waiting()}
}

// Spares returns how many empty Chromes of an engine are kept ready.
func (m *Manager[P, S, B]) Spares(engine string) int { return m.spares.ready(engine) }

// Acquire takes a slot for the daemon's own work. If none is free and wait is true, it waits
// until ctx ends. The error is too_many_sessions, or shutting_down after Stop.
func (m *Manager[P, S, B]) Acquire(ctx context.Context, wait bool) error {
	return m.slots.acquire(ctx, Claim{}, wait)
}

// AcquireFor is Acquire for a session. The error is quota_exceeded if a limit of the claim
// is reached.
func (m *Manager[P, S, B]) AcquireFor(ctx context.Context, c Claim, wait bool) error {
	return m.slots.acquire(ctx, c, wait)
}

// ReleaseFor gives back the slot of a claim of AcquireFor.
func (m *Manager[P, S, B]) ReleaseFor(c Claim) { m.slots.release(c) }

// Held returns how large a share is of those that claims count.
func (m *Manager[P, S, B]) Held(share quota.Share) int64 { return m.slots.of(share) }

// AcquireUnlessLast takes a slot if at least one more stays free for a session. It
// reports whether it took one.
func (m *Manager[P, S, B]) AcquireUnlessLast() bool { return m.slots.acquireUnlessLast() }

// Release gives back a slot of Acquire or AcquireUnlessLast.
func (m *Manager[P, S, B]) Release() { m.slots.release(Claim{}) }

// Free returns the number of free slots.
func (m *Manager[P, S, B]) Free() int { return m.slots.left() }

// Park keeps the frozen Chrome of a snapshot. If a limit is exceeded then, the oldest parked
// Chromes of that user or key are ended; the files of their snapshots stay. From then on the
// Manager owns the Chrome.
func (m *Manager[P, S, B]) Park(ctx context.Context, snapshotID string, chrome P, limits []quota.Limit) error {
	return m.parked.Put(ctx, snapshotID, chrome, shares(limits)...)
}

// shares converts limits for package pool.
func shares(limits []quota.Limit) []pool.Share {
	var all []pool.Share
	for _, l := range limits {
		share := pool.Share{Of: shareOf(l.Holder), Most: -1}
		if l.Most != nil {
			share.Most = int(*l.Most)
		}
		all = append(all, share)
	}
	return all
}

// shareOf names a holder in package pool.
func shareOf(h quota.Holder) string { return string(h.Kind) + " " + h.ID }

// ParkedOf returns how many parked Chromes a user or a key has.
func (m *Manager[P, S, B]) ParkedOf(h quota.Holder) int { return m.parked.CountOf(shareOf(h)) }

// StandbysOf returns how many standbys hold a user's default.
func (m *Manager[P, S, B]) StandbysOf(userID string) int { return m.standbys.of(userID) }

// TakeParked hands out the parked Chrome of a snapshot if it fits. fits returns "" if it
// does, else the reason. If ok is false, why is the reason.
func (m *Manager[P, S, B]) TakeParked(snapshotID string, fits func(P) (why string)) (chrome P, ok bool, why string) {
	return m.parked.Take(snapshotID, fits)
}

// HasParked reports whether the Chrome of a snapshot is parked.
func (m *Manager[P, S, B]) HasParked(snapshotID string) bool { return m.parked.Has(snapshotID) }

// DropParked ends the parked Chrome of a snapshot, if there is one.
func (m *Manager[P, S, B]) DropParked(ctx context.Context, snapshotID string) error {
	return m.parked.Drop(ctx, snapshotID)
}

// UseEngine records that an engine is used. From then on spares of that engine are kept.
func (m *Manager[P, S, B]) UseEngine(engine string) { m.spares.use(engine) }

// KeepsSpares reports whether the settings allow spares of an engine.
func (m *Manager[P, S, B]) KeepsSpares(engine string) bool { return m.spares.size(engine) > 0 }

// TakeSpare hands out a spare of an engine, if one is ready.
func (m *Manager[P, S, B]) TakeSpare(engine string) (S, bool) { return m.spares.take(engine) }

// TakeStandby hands out a standby that holds a snapshot, if one is ready and fits. fits
// returns "" if it does, else the reason. If ok is false, why is the reason, or "" if no
// settings request one.
func (m *Manager[P, S, B]) TakeStandby(snapshotID, engine string, fits func(B) (why string)) (chrome B, ok bool, why string) {
	return m.standbys.take(pool.Key{Snapshot: snapshotID, Engine: engine}, fits)
}

// CountRestore records a restore of a user's default that a standby could serve. A
// default that is restored often gets a standby.
func (m *Manager[P, S, B]) CountRestore(userID, engine string) {
	m.standbys.demand.count(userID, engine)
}

// SetStandbys records whether a user's settings request standbys, and updates the
// standbys. It does not wait.
func (m *Manager[P, S, B]) SetStandbys(userID string, requested bool) {
	m.standbys.demand.setRequested(userID, requested)
	m.standbys.replan()
}

// DefaultChanged updates the standbys after a user's default has moved. It does not wait.
func (m *Manager[P, S, B]) DefaultChanged() { m.standbys.replan() }

// Replenish starts missing Chromes, spares first. It does not wait.
func (m *Manager[P, S, B]) Replenish() {
	m.spares.refill()
	m.standbys.replan()
}

// spareDelay is how long ReplenishLater delays the start of spares. A first page takes some
// 100 ms.
const spareDelay = 200 * time.Millisecond

// ReplenishLater is Replenish after a create, whose caller connects to the browser now and
// needs the processors for its first page. Spares start after 200 ms, standbys after
// Config.StandbyDelay.
func (m *Manager[P, S, B]) ReplenishLater() {
	m.standbys.pause()
	time.AfterFunc(spareDelay, m.Replenish)
}

// FreeCapacity ends kept Chromes to free a slot or memory for a Chrome that is about to
// start. It ends standbys first, because the fewest sessions can use them, then surplus
// spares. While memory is still short it ends parked Chromes, oldest first. The files of
// their snapshots stay.
func (m *Manager[P, S, B]) FreeCapacity(ctx context.Context) {
	m.standbys.ready.Keep(m.ahead() - m.spares.len())
	m.spares.trim()
	for !m.sessions.MemoryAllows() {
		evicted, err := m.parked.Evict(context.WithoutCancel(ctx))
		if err != nil {
			m.log.Error("cannot end a parked Chrome; it keeps its memory until the daemon restarts", "error", err)
		}
		if !evicted || err != nil {
			return
		}
	}
}

// ahead returns how many spares and standbys there may be: one for each free slot, and
// none if memory is short.
func (m *Manager[P, S, B]) ahead() int {
	if !m.sessions.MemoryAllows() {
		return 0
	}
	return m.slots.left()
}

// spareLimit returns how many spares there may be: ahead minus the standbys.
func (m *Manager[P, S, B]) spareLimit() int { return m.ahead() - m.standbys.ready.Len() }

// standbyLimit returns how many standbys there may be: the free slots minus the spares.
func (m *Manager[P, S, B]) standbyLimit() int {
	_, most := m.spares.complete()
	return m.slots.left() - most
}

// idle reports whether a standby may be started: no create is under way, all spares are
// ready, and memory allows one more Chrome.
func (m *Manager[P, S, B]) idle() bool {
	creating := m.sessions.Creating()
	all, _ := m.spares.complete()
	return !creating && all && m.ahead() > 0
}

// refillSpares starts missing spares after standbys have ended.
func (m *Manager[P, S, B]) refillSpares() { m.spares.refill() }
