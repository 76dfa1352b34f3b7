package capacity

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/pool"
)

// standbys keep Chromes that hold users' default environments. One goroutine, run,
// looks which there should be whenever something has happened, ends the others and
// starts what is missing, one at a time. A create takes one by its snapshot's ID
// alone, so nobody gets a stale one.
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

	ctx    context.Context // of the starts
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	wanted map[pool.Key]int // as it was last found
	calm   time.Time        // nothing is started before

	// Only run uses these.
	holders  map[string]bool // users who were given some the last time
	starting *start          // nil where none is being started
	failed   map[pool.Key]failure
}

// budget is what standbys ask of the Manager that they belong to.
type budget interface {
	standbyLimit() int // how many there may be
	idle() bool        // there is nothing better to do than to start one
	refillSpares()     // some have ended, which leaves room for spares
}

// start is a standby that is being started.
type start struct {
	key  pool.Key
	stop context.CancelFunc
	err  chan error
}

// failure is what is known of a snapshot that did not come up.
type failure struct {
	pause time.Duration
	until time.Time
}

// standbyPause is how long a Manager waits until it looks again whether a standby
// can be started. A snapshot that did not come up is left alone for longer after
// each failure, longStandbyPause at most.
const (
	standbyPause     = time.Second
	longStandbyPause = 10 * time.Minute
)

func newStandbys[S, B pool.Chrome](cfg Config, b budget, sessions Sessions[S, B], catalogue Catalogue) *standbys[S, B] {
	k := &standbys[S, B]{cfg: cfg, budget: b, sessions: sessions, catalogue: catalogue, now: cfg.Now, log: cfg.Log,
		demand: newDemand(cfg.Standby.Size > 0, cfg.Now), wake: make(chan struct{}, 1), failed: map[pool.Key]failure{}}
	k.ready = pool.NewStandbys[B](cfg.Standby.Age, k.look)
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if cfg.Standby.Size > 0 {
		k.wg.Go(k.run)
	}
	return k
}

// look has run look which standbys there should be: something has happened. It does
// not wait.
func (k *standbys[S, B]) look() {
	select {
	case k.wake <- struct{}{}:
	default: // it will
	}
}

// pause has nothing started for a while.
func (k *standbys[S, B]) pause() {
	k.mu.Lock()
	k.calm = k.now().Add(k.cfg.Calm)
	k.mu.Unlock()
}

// take hands out a standby. Without one, why says why, where that is worth a word.
func (k *standbys[S, B]) take(key pool.Key, fits func(B) string) (chrome B, ok bool, why string) {
	chrome, ok, why = k.ready.Take(key, fits)
	if ok {
		return chrome, true, ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if why == "" && k.wanted[key] > 0 {
		why = "no standby Chrome was ready"
	}
	return chrome, false, why
}

// close ends them all, those that are being started too, and waits.
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

// update ends what should not be there and starts the first that is missing. It
// returns when to look again, 0 where there is nothing to wait for.
func (k *standbys[S, B]) update() time.Duration {
	plan, err := k.plan()
	if err != nil {
		if k.ctx.Err() == nil {
			k.log.Warn("which environments should stand by could not be looked up", "error", err)
		}
		return standbyPause
	}
	wanted := map[pool.Key]int{}
	for _, w := range plan {
		wanted[w.key] = w.n
	}
	maps.DeleteFunc(k.failed, func(key pool.Key, f failure) bool { return wanted[key] == 0 && !k.now().Before(f.until) })
	k.mu.Lock()
	k.wanted = wanted
	calm := k.calm.Sub(k.now())
	k.mu.Unlock()
	if k.ready.Retain(wanted) {
		k.budget.refillSpares()
	}
	if k.starting != nil {
		if wanted[k.starting.key] <= k.ready.Of(k.starting.key) {
			k.starting.stop()
		}
		return 0 // its end wakes run
	}
	missing, wait := k.missing(plan)
	switch {
	case missing == nil:
		return wait
	case calm > 0:
		return calm
	case !k.budget.idle():
		return standbyPause
	}
	k.start(*missing)
	return 0
}

// missing is the first that there should be one more of, and when to look again
// for one that has failed.
func (k *standbys[S, B]) missing(plan []want) (first *want, wait time.Duration) {
	now := k.now()
	for i, w := range plan {
		if k.ready.Of(w.key) >= w.n {
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

// start starts one beside the caller.
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

// started takes the outcome of a start. A standby that nobody wants any more ends
// with the next update.
func (k *standbys[S, B]) started(err error) {
	key := k.starting.key
	k.starting.stop()
	k.starting = nil
	k.mu.Lock()
	wanted := k.wanted[key] > 0
	k.mu.Unlock()
	if err == nil {
		k.log.Info("a Chrome stands by", "snapshot", key.Snapshot, "engine", key.Engine)
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
		k.log.Warn("a standby Chrome could not be started", "snapshot", key.Snapshot, "error", err)
	}
}
