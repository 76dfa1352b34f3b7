package session

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

// How long a rescue that failed waits before it is tried again: at first, then
// twice as long each time, and at most.
const (
	rescuePause    = time.Second
	rescueMaxPause = time.Minute
)

// rescues saves what the sessions of a dead daemon left, one after the other,
// while the daemon serves. A session that somebody waits for comes first. One whose
// rescue fails, because the store has no room for one, keeps its data and is tried
// again. Its methods are safe for concurrent use.
type rescues struct {
	svc      *Service
	first    time.Duration // the first pause; a test shortens it
	wg       sync.WaitGroup
	stopping chan struct{} // closed when no further rescue is to begin
	once     sync.Once

	mu      sync.Mutex
	running bool
	all     []*pendingRescue // in the order of their turns
}

// pendingRescue is a session whose data is not saved yet.
type pendingRescue struct {
	rec     profiles.Session
	dir     *browser.Dir  // nil: its data is gone
	waiting int           // callers that wait for it
	tried   chan struct{} // closed at the end of a try, another one after it
	err     error         // of the last try
}

func newRescues(s *Service) *rescues {
	return &rescues{svc: s, first: rescuePause, stopping: make(chan struct{})}
}

// add takes up a session that a dead daemon left; dir is nil where that has no data.
func (r *rescues) add(rec profiles.Session, dir *browser.Dir) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.find(rec.ID) == nil {
		r.all = append(r.all, &pendingRescue{rec: rec, dir: dir, tried: make(chan struct{})})
	}
}

// find returns the session's rescue, nil where there is none. The caller holds
// the lock.
func (r *rescues) find(sessionID string) *pendingRescue {
	for _, p := range r.all {
		if p.rec.ID == sessionID {
			return p
		}
	}
	return nil
}

// has reports whether a session is to be rescued still.
func (r *rescues) has(sessionID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(sessionID) != nil
}

// len is how many sessions are to be rescued still.
func (r *rescues) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// begin starts the one goroutine that rescues, unless it runs.
func (r *rescues) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		r.running = true
		r.wg.Go(r.run)
	}
}

// stop begins no further rescue and returns at once: callers that wait get
// shutting_down, and the rescue under way goes on.
func (r *rescues) stop() {
	r.once.Do(func() { close(r.stopping) })
}

// wait returns when the rescue under way has ended, with the service's context at
// the latest. Call stop first.
func (r *rescues) wait() { r.wg.Wait() }

func (r *rescues) run() {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running = false
	}()
	for pause := r.first; ; pause = min(2*pause, rescueMaxPause) {
		failed := r.round()
		if failed == 0 || r.stopped() {
			return
		}
		r.svc.Log.Error("sessions of the last daemon are not rescued yet; their data is kept", "sessions", failed, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-r.stopping:
			return
		}
	}
}

func (r *rescues) stopped() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

// round tries each session once, and counts those that are to be tried again.
func (r *rescues) round() (failed int) {
	done := map[*pendingRescue]bool{}
	for !r.stopped() {
		p := r.next(done)
		if p == nil {
			break
		}
		done[p] = true
		err := r.svc.recoverOne(r.svc.ctx, p.rec, p.dir)
		if err != nil {
			failed++
			r.svc.Log.Error("a session is not rescued yet", "session", p.rec.ID, "error", err)
		}
		r.settle(p, err)
	}
	return failed
}

// next is the session whose turn it is: of those not done, the one that most
// wait for, else the first.
func (r *rescues) next(done map[*pendingRescue]bool) *pendingRescue {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(r.all), func(p *pendingRescue) bool { return done[p] })
	if len(left) == 0 {
		return nil
	}
	return slices.MaxFunc(left, func(a, b *pendingRescue) int { return cmp.Compare(a.waiting, b.waiting) })
}

// settle tells who waits what came of a try.
func (r *rescues) settle(p *pendingRescue, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.err = err
	close(p.tried)
	p.tried = make(chan struct{})
	if err == nil {
		r.all = slices.DeleteFunc(r.all, func(other *pendingRescue) bool { return other == p })
	}
}

// await returns once a session is not to be rescued any more. It is the error
// of the rescue's next try, or of the last one where that has failed already; shutting_down
// where the daemon stops, timeout when ctx ends.
func (r *rescues) await(ctx context.Context, sessionID string) error {
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
	select {
	case <-tried:
		r.mu.Lock()
		defer r.mu.Unlock()
		return p.err
	case <-r.stopping:
		return fault.New(fault.ShuttingDown, op, "the daemon is shutting down; what session %s left is rescued at the next start", sessionID)
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, op, "session "+sessionID+" is being rescued; ask again later")
	}
}
