package capacity

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/pool"
)

// standbys keeps Chromes that hold users' default environments. One goroutine, run, plans
// the standbys after every change. It ends those that are not planned and starts missing
// ones, one at a time. A create takes a standby by its snapshot's ID, so no create gets
// an outdated one.
type standbys[S, B pool.Chrome] struct {
	cfg       Config
	budget    budget
	sessions  Sessions[S, B]
	catalogue Catalogue
	now       func() time.Time
	log       *slog.Logger
	demand    *demand
	ready     *pool.Standbys[B]
	wake      chan struct{}

	ctx    context.Context // the context of the starts
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu          sync.Mutex
	wanted      map[pool.Key]int    // the last plan
	requested   map[pool.Key]bool   // those of it that users' settings request
	users       map[pool.Key]string // whose defaults they are
	pausedUntil time.Time           // no standby is started before this time

	// Only run uses the fields below.
	holders  map[string]bool // users with standbys in the last plan
	starting *start          // nil if no standby is being started
	failed   map[pool.Key]failure
}

// budget is what standbys needs of its Manager.
type budget interface {
	standbyLimit() int // how many there may be
	idle() bool        // nothing more urgent than starting a standby
	refillSpares()     // some standbys have ended, so that more spares may start
}

// start is a standby that is being started.
type start struct {
	key  pool.Key
	stop context.CancelFunc
	err  chan error
}

// failure records that a standby of a snapshot failed to start.
type failure struct {
	pause time.Duration
	until time.Time
}

// standbyPause is how long a Manager waits before it checks again whether a standby can
// start. After a failed start the pause of that snapshot doubles, up to longStandbyPause.
const (
	standbyPause     = time.Second
	longStandbyPause = 10 * time.Minute
)

func newStandbys[S, B pool.Chrome](cfg Config, b budget, sessions Sessions[S, B], catalogue Catalogue) *standbys[S, B] {
	k := &standbys[S, B]{cfg: cfg, budget: b, sessions: sessions, catalogue: catalogue, now: cfg.Now, log: cfg.Log,
		demand: newDemand(cfg.Standby.Size > 0, cfg.Now), wake: make(chan struct{}, 1), failed: map[pool.Key]failure{}}
	k.ready = pool.NewStandbys[B](cfg.Standby.Age, k.replan)
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if cfg.Standby.Size > 0 {
		k.wg.Go(k.run)
	}
	return k
}

// replan makes run update the standbys after a change. It does not wait.
func (k *standbys[S, B]) replan() {
	select {
	case k.wake <- struct{}{}:
	default: // an update is already due
	}
}

// pause delays the start of standbys for cfg.StandbyDelay.
func (k *standbys[S, B]) pause() {
	k.mu.Lock()
	k.pausedUntil = k.now().Add(k.cfg.StandbyDelay)
	k.mu.Unlock()
}

// take hands out a standby. If ok is false, why is the reason. It is "" if no settings
// request a standby: then a restore without one is in order, although a default that is
// restored often gets one.
func (k *standbys[S, B]) take(key pool.Key, fits func(B) string) (chrome B, ok bool, why string) {
	chrome, ok, why = k.ready.Take(key, fits)
	if ok {
		return chrome, true, ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if why == "" && k.requested[key] {
		why = "no standby Chrome was ready"
	}
	return chrome, false, why
}

// of returns how many standbys hold a user's default.
func (k *standbys[S, B]) of(userID string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, user := range k.users {
		if user == userID {
			n += k.ready.Count(key)
		}
	}
	return n
}

// close ends all standbys, including those that are starting, and waits until they have
// ended.
func (k *standbys[S, B]) close() {
	k.cancel()
	k.wg.Wait()
	k.ready.Close()
}

func (k *standbys[S, B]) run() {
	later := time.NewTimer(standbyPause)
	later.Stop()
	defer later.Stop()
	for {
		var started chan error
		if k.starting != nil {
			started = k.starting.err
		}
		select {
		case <-k.wake:
		case <-later.C:
		case err := <-started:
			k.started(err)
		case <-k.ctx.Done():
			if k.starting != nil {
				k.started(<-k.starting.err)
			}
			return
		}
		if wait := k.update(); wait > 0 {
			later.Reset(wait)
		}
	}
}

// update ends unplanned standbys and starts the first missing one. It returns how long
// run waits until the next update; 0 means until the next change.
func (k *standbys[S, B]) update() time.Duration {
	plan, err := k.plan()
	if err != nil {
		if k.ctx.Err() == nil {
			k.log.Warn("cannot read which default environments to keep on standby; trying again", "error", err)
		}
		return standbyPause
	}
	wanted, requested, users := map[pool.Key]int{}, map[pool.Key]bool{}, map[pool.Key]string{}
	for _, w := range plan {
		wanted[w.key], requested[w.key], users[w.key] = w.n, w.requested, w.snapshot.UserID
	}
	maps.DeleteFunc(k.failed, func(key pool.Key, f failure) bool { return wanted[key] == 0 && !k.now().Before(f.until) })
	k.mu.Lock()
	k.wanted, k.requested, k.users = wanted, requested, users
	pause := k.pausedUntil.Sub(k.now())
	k.mu.Unlock()
	if k.ready.Retain(wanted) {
		k.budget.refillSpares()
	}
	if k.starting != nil {
		if wanted[k.starting.key] <= k.ready.Count(k.starting.key) {
			k.starting.stop()
		}
		return 0 // run updates again when that start has ended
	}
	missing, wait := k.missing(plan)
	switch {
	case missing == nil:
		return wait
	case pause > 0:
		return pause
	case !k.budget.idle():
		return standbyPause
	}
	k.start(*missing)
	return 0
}

// missing returns the first want with too few standbys, nil if there is none. wait is how
// long until one that failed may start again.
func (k *standbys[S, B]) missing(plan []want) (first *want, wait time.Duration) {
	now := k.now()
	for i, w := range plan {
		if k.ready.Count(w.key) >= w.n {
			continue
		}
		if left := k.failed[w.key].until.Sub(now); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		return &plan[i], 0
	}
	return nil, wait
}

// start starts a standby on its own goroutine.
func (k *standbys[S, B]) start(w want) {
	ctx, stop := context.WithCancel(k.ctx)
	s := &start{key: w.key, stop: stop, err: make(chan error, 1)}
	k.starting = s
	k.wg.Go(func() {
		chrome, err := k.sessions.StartStandby(ctx, w.snapshot, w.key.Engine)
		if err == nil {
			k.ready.Put(w.key, chrome)
		}
		s.err <- err
	})
}

// started handles the outcome of a start. If the standby is no longer wanted, the next
// update ends it.
func (k *standbys[S, B]) started(err error) {
	key := k.starting.key
	k.starting.stop()
	k.starting = nil
	k.mu.Lock()
	wanted := k.wanted[key] > 0
	k.mu.Unlock()
	if err == nil {
		k.log.Info("a standby Chrome is ready", "snapshot", key.Snapshot, "engine", key.Engine)
	}
	if err == nil || !wanted {
		delete(k.failed, key)
		return
	}
	f := k.failed[key]
	f.pause = min(max(2*f.pause, standbyPause), longStandbyPause)
	f.until = k.now().Add(f.pause)
	k.failed[key] = f
	if k.ctx.Err() == nil {
		k.log.Warn("cannot start a standby Chrome; trying again later", "snapshot", key.Snapshot, "error", err)
	}
}
