package rescue

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// The pause before a failed rescue is tried again. It starts at rescuePause, doubles each
// time, and is at most rescueMaxPause.
const (
	rescuePause    = time.Second
	rescueMaxPause = time.Minute
)

// Rescues saves what the sessions of a dead daemon left, one session after the other,
// while the daemon already serves. A session that callers wait for comes first. If a
// rescue fails, for example because the store is full, the data is kept and the rescue is
// tried again. Its methods are safe for concurrent use.
type Rescues struct {
	cfg      Config
	ctx      context.Context // lives as long as the daemon's work
	wg       sync.WaitGroup
	stopping chan struct{} // closed when no further rescue may start
	once     sync.Once

	mu      sync.Mutex
	running bool
	all     []*pendingRescue // in the order of their turns
}

// pendingRescue is a session whose data has not been saved yet.
type pendingRescue struct {
	rec     profiles.Session
	dir     *browser.Dir  // nil: it is missing
	waiting int           // callers that wait for it
	tried   chan struct{} // closed at the end of a try, and replaced for the next
	err     error         // of the last try
}

// New makes Rescues. It ends its work with ctx at the latest.
func New(ctx context.Context, cfg Config) *Rescues {
	cfg.FirstPause = cmp.Or(cfg.FirstPause, rescuePause)
	return &Rescues{cfg: cfg, ctx: ctx, stopping: make(chan struct{})}
}

// Add adds a session that a dead daemon left, or that another node has taken over from this
// one; dir is nil if it has no data. The caller calls Begin.
func (r *Rescues) Add(rec profiles.Session, dir *browser.Dir) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A session that this node lost, resumed and lost again has several directories.
	if !slices.ContainsFunc(r.all, func(p *pendingRescue) bool { return p.rec.ID == rec.ID && p.rec.RunDir == rec.RunDir }) {
		r.all = append(r.all, &pendingRescue{rec: rec, dir: dir, tried: make(chan struct{})})
	}
}

// find returns the session's rescue; nil if there is none. The caller holds the lock.
func (r *Rescues) find(sessionID string) *pendingRescue {
	for _, p := range r.all {
		if p.rec.ID == sessionID {
			return p
		}
	}
	return nil
}

// Has reports whether a session still waits for its rescue.
func (r *Rescues) Has(sessionID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(sessionID) != nil
}

// Counts returns how many sessions still wait for their rescue, and how many callers
// wait for one of them.
func (r *Rescues) Counts() (pending, waiting int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.all {
		waiting += p.waiting
	}
	return len(r.all), waiting
}

// Begin starts the goroutine that rescues, unless it is running.
func (r *Rescues) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		r.running = true
		r.wg.Go(r.run)
	}
}

// Stop starts no further rescue and returns at once. Waiting callers get shutting_down.
// The current rescue continues.
func (r *Rescues) Stop() {
	r.once.Do(func() { close(r.stopping) })
}

// Wait returns when the current rescue has ended, at the latest with the daemon's work.
// Call Stop first.
func (r *Rescues) Wait() { r.wg.Wait() }

func (r *Rescues) run() {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running = false
	}()
	for pause := r.cfg.FirstPause; ; pause = min(2*pause, rescueMaxPause) {
		failed := r.round()
		if failed == 0 || r.stopped() {
			return
		}
		r.cfg.Log.Error("some sessions of the previous daemon could not be rescued yet; their data is kept and the rescue is tried again", "sessions", failed, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-r.stopping:
			return
		}
	}
}

func (r *Rescues) stopped() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

// round tries each session once and returns how many have to be tried again.
func (r *Rescues) round() (failed int) {
	done := map[*pendingRescue]bool{}
	for !r.stopped() {
		p := r.next(done)
		if p == nil {
			break
		}
		done[p] = true
		err := r.recoverOne(r.ctx, p.rec, p.dir)
		if err != nil {
			failed++
			r.cfg.Log.Error("a session could not be rescued yet", "session", p.rec.ID, "error", err)
		}
		r.notifyWaiting(p, err)
	}
	return failed
}

// next returns the session to rescue next: of those not done, the one that most callers
// wait for, otherwise the first.
func (r *Rescues) next(done map[*pendingRescue]bool) *pendingRescue {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(r.all), func(p *pendingRescue) bool { return done[p] })
	if len(left) == 0 {
		return nil
	}
	return slices.MaxFunc(left, func(a, b *pendingRescue) int { return cmp.Compare(a.waiting, b.waiting) })
}

// notifyWaiting reports the result of a try to the waiting callers.
func (r *Rescues) notifyWaiting(p *pendingRescue, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.err = err
	close(p.tried)
	p.tried = make(chan struct{})
	if err == nil {
		r.all = slices.DeleteFunc(r.all, func(other *pendingRescue) bool { return other == p })
	}
}

// Await returns when a session's rescue is done, or at once if there is none. The error
// is that of the last try if one has failed already, else that of the next try. It is
// shutting_down when the daemon stops, and timeout when ctx ends.
func (r *Rescues) Await(ctx context.Context, sessionID string) error {
	const op = "session.rescue"
	r.mu.Lock()
	p := r.find(sessionID)
	if p == nil {
		r.mu.Unlock()
		return nil
	}
	if p.err != nil {
		defer r.mu.Unlock()
		return p.err
	}
	tried := p.tried
	p.waiting++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		p.waiting--
	}()
	select {
	case <-tried:
		r.mu.Lock()
		defer r.mu.Unlock()
		return p.err
	case <-r.stopping:
		return fault.New(fault.ShuttingDown, op, "the daemon is shutting down; session %s is rescued at the next start", sessionID)
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, op, "session "+sessionID+" is being rescued; try again later")
	}
}
