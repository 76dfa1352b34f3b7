package quota

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates limits how many requests holders make in a second. A holder may make as many at
// once as in a second. Its methods are safe for concurrent use.
type Rates struct {
	mu    sync.Mutex
	known map[Holder]*rate.Limiter
	sweep int // at this size, limiters that are full again are forgotten
}

// Rate is the state of one holder's limit after a request.
type Rate struct {
	Kind  Kind
	Limit int64 // requests in a second
	Left  int64 // requests that may follow at once
	// Reset is after how long Limit requests may follow at once again.
	Reset time.Duration
}

// minSweep is the smallest number of limiters at which they are looked through.
const minSweep = 1024

// NewRates makes Rates.
func NewRates() *Rates { return &Rates{known: map[Holder]*rate.Limiter{}, sweep: minSweep} }

// Take counts a request at a time against the limits that have a value, and returns their
// states. If one is reached, none is charged and the error is quota_exceeded.
func (r *Rates) Take(now time.Time, limits []Limit) ([]Rate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*rate.Limiter
	var reached error
	for _, l := range limits {
		if l.Most == nil {
			continue
		}
		limiter := r.limiter(now, l)
		all = append(all, limiter)
		if reached == nil && limiter.TokensAt(now) < 1 {
			reached = l.Error("quota.rate", *l.Most)
		}
	}
	states := make([]Rate, 0, len(all))
	for _, l := range limits {
		if l.Most == nil {
			continue
		}
		limiter := all[len(states)]
		if reached == nil {
			limiter.AllowN(now, 1)
		}
		tokens := max(limiter.TokensAt(now), 0)
		missing := float64(*l.Most) - tokens
		states = append(states, Rate{Kind: l.Kind, Limit: *l.Most, Left: int64(math.Floor(tokens)),
			Reset: time.Duration(missing / float64(*l.Most) * float64(time.Second))})
	}
	return states, reached
}

// limiter returns the limiter of a holder, with the present limit. The caller holds the
// lock.
func (r *Rates) limiter(now time.Time, l Limit) *rate.Limiter {
	limiter := r.known[l.Holder]
	if limiter == nil {
		r.forget(now)
		limiter = rate.NewLimiter(rate.Limit(*l.Most), int(*l.Most))
		r.known[l.Holder] = limiter
	}
	if limiter.Burst() != int(*l.Most) {
		limiter.SetLimitAt(now, rate.Limit(*l.Most))
		limiter.SetBurstAt(now, int(*l.Most))
	}
	return limiter
}

// forget forgets the limiters that are full, which new ones equal, when there are many. So
// those of the last second remain. The caller holds the lock.
func (r *Rates) forget(now time.Time) {
	if len(r.known) < r.sweep {
		return
	}
	for holder, limiter := range r.known {
		if limiter.TokensAt(now) >= float64(limiter.Burst()) {
			delete(r.known, holder)
		}
	}
	r.sweep = max(2*len(r.known), minSweep)
}

// Used returns how many requests of its last second a holder has made.
func (r *Rates) Used(now time.Time, h Holder) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter := r.known[h]
	if limiter == nil {
		return 0
	}
	return int64(math.Ceil(max(float64(limiter.Burst())-limiter.TokensAt(now), 0)))
}
