package session

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/profiles"
)

// standbys keeps Chromes with users' default environments brought in. One
// goroutine, run, looks which there should be whenever something has happened,
// ends the others and starts what is missing, one at a time. Which one a create
// may take the snapshot's ID alone decides, so that nobody gets a stale one.
type standbys struct {
	svc   *Service
	ready *pool.Standbys[*standbyChrome]
	wake  chan struct{}

	ctx    context.Context // of the starts
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	users  map[string]*demand
	wanted map[pool.Key]int // as it was last found
	calm   time.Time        // nothing is started before

	// ---
	holders map[string]bool // users who were given some the last time
	under   *rise           // nil where none is being started
	failed  map[pool.Key]failure
}

// rise is the start of a standby.
type rise struct {
	key  pool.Key
	stop context.CancelFunc
	err  chan error
}

// failure is what is known of a snapshot that did not come up.
type failure struct {
	pause time.Duration
	until time.Time
}

// How long is waited until it is looked again whether a standby can be started,
// and how long a snapshot that did not come up is left alone, at most.
const (
	standbyPause     = time.Second
	longStandbyPause = 10 * time.Minute
)

func newStandbys(s *Service) *standbys {
	k := &standbys{svc: s, wake: make(chan struct{}, 1), users: map[string]*demand{}, failed: map[pool.Key]failure{}}
	k.ready = pool.NewStandbys[*standbyChrome](s.cfg.Standby.Age, k.look)
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if s.cfg.Standby.Size > 0 {
		k.wg.Go(k.run)
	}
	return k
}

// look has it looked which standbys there should be: something has happened. It
// does not wait.
func (k *standbys) look() {
	select {
	case k.wake <- struct{}{}:
	default: // it will
	}
}

// rest has nothing started for a while: somebody has just been given a browser,
// and needs the machine.
func (k *standbys) rest() {
	k.mu.Lock()
	k.calm = k.svc.Now().Add(k.svc.cfg.Calm)
	k.mu.Unlock()
}

// take hands out a standby; nil, and why where that is worth a word, where none
// can serve.
func (k *standbys) take(key pool.Key, fits func(*standbyChrome) string) (_ *standbyChrome, why string) {
	chrome, ok, why := k.ready.Take(key, fits)
	if ok {
		return chrome, ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if why == "" && k.wanted[key] > 0 {
		why = "no standby Chrome was ready"
	}
	return nil, why
}

// close ends them all, those that are on their way too, and waits.
func (k *standbys) close() {
	k.cancel()
	k.wg.Wait()
	k.ready.Close()
}

func (k *standbys) run() {
	later := time.NewTimer(standbyPause)
	later.Stop()
	defer later.Stop()
	for {
		var came chan error
		if k.under != nil {
			came = k.under.err
		}
		select {
		case <-k.wake:
		case <-later.C:
		case err := <-came:
			k.came(err)
		case <-k.ctx.Done():
			if k.under != nil {
				k.came(<-k.under.err)
			}
			return
		}
		if wait := k.tend(); wait > 0 {
			later.Reset(wait)
		}
	}
}

// tend ends what should not be there and starts the first that is missing. It
// returns when to look again, 0 where nothing is to be waited for.
func (k *standbys) tend() time.Duration {
	plan, err := k.plan()
	if err != nil {
		if k.ctx.Err() == nil {
			k.svc.Log.Warn("which environments should stand by could not be looked up", "error", err)
		}
		return standbyPause
	}
	wanted := map[pool.Key]int{}
	for _, w := range plan {
		wanted[w.key] = w.n
	}
	maps.DeleteFunc(k.failed, func(key pool.Key, f failure) bool { return wanted[key] == 0 && !k.svc.Now().Before(f.until) })
	k.mu.Lock()
	k.wanted = wanted
	calm := k.calm.Sub(k.svc.Now())
	k.mu.Unlock()
	if k.ready.Retain(wanted) {
		k.svc.spares.refill() // there is room for them now
	}
	if k.under != nil {
		if wanted[k.under.key] <= k.ready.Of(k.under.key) {
			k.under.stop()
		}
		return 0 // its end is heard of
	}
	missing, wait := k.missing(plan)
	switch {
	case missing == nil:
		return wait
	case calm > 0:
		return calm
	case !k.svc.idle():
		return standbyPause
	}
	k.start(*missing)
	return 0
}

// missing is the first that there should be one more of, and when to look again
// for one that has failed.
func (k *standbys) missing(plan []want) (first *want, wait time.Duration) {
	now := k.svc.Now()
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

// start brings one up, beside the caller.
func (k *standbys) start(w want) {
	ctx, stop := context.WithCancel(k.ctx)
	k.under = &rise{key: w.key, stop: stop, err: make(chan error, 1)}
	under := k.under
	k.wg.Go(func() {
		chrome, err := k.svc.standUp(ctx, w.snapshot, w.key.Engine)
		if err == nil {
			k.ready.Put(w.key, chrome)
		}
		under.err <- err
	})
}

// came takes in what a start has come to. What is not wanted any more ends when
// it is tended next.
func (k *standbys) came(err error) {
	key := k.under.key
	k.under.stop()
	k.under = nil
	k.mu.Lock()
	wanted := k.wanted[key] > 0
	k.mu.Unlock()
	if err == nil {
		k.svc.Log.Info("a Chrome stands by", "snapshot", key.Snapshot, "engine", key.Engine)
	}
	if err == nil || !wanted {
		delete(k.failed, key)
		return
	}
	f := k.failed[key]
	f.pause = min(max(2*f.pause, standbyPause), longStandbyPause)
	f.until = k.svc.Now().Add(f.pause)
	k.failed[key] = f
	if k.ctx.Err() == nil {
		k.svc.Log.Warn("a standby Chrome could not be started", "snapshot", key.Snapshot, "error", err)
	}
}

// want is how many Chromes are to stand by with a snapshot.
type want struct {
	key      pool.Key
	snapshot profiles.Snapshot
	n        int
}

// idle reports whether there is nothing better to do than to start a standby: no
// create is under way, the spares are there, and there is memory.
func (s *Service) idle() bool {
	s.mu.Lock()
	creating := len(s.creating)
	s.mu.Unlock()
	all, _ := s.spared()
	return creating == 0 && all && s.ahead() > 0
}
