// Package webhook sends what the catalogue's queue of deliveries holds: signed
// as Standard Webhooks has it, again and again until the receiver says 2xx or
// too much time has passed. It does not know what the deliveries are about.
package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/stasisd/stasis/profiles"
)

const (
	// GiveUpAfter is how long a delivery is tried.
	GiveUpAfter = 24 * time.Hour

	attemptTimeout = 10 * time.Second
	atOnce         = 8 // deliveries that are under way
	firstPause     = 5 * time.Second
	longestPause   = time.Hour
	outOfReach     = 3 * longestPause / 2 // what is due later than that is so by a clock that was set back
	excerptBytes   = 200                  // of an answer that was no success
	lookAgain      = 5 * time.Second
)

// Queue is what a sender needs of the catalogue; see [profiles.DeliveryStore].
type Queue interface {
	DueDeliveries(ctx context.Context, now, beyond time.Time, limit int) ([]profiles.Delivery, error)
	NextDelivery(ctx context.Context, now time.Time) (time.Time, error)
	FinishAttempt(ctx context.Context, d profiles.Delivery, a profiles.Attempt) error
}

// Options are what a Sender is made of.
type Options struct {
	Queue        Queue
	Secret       Secret
	AllowPrivate bool // private, loopback and link-local addresses too
	Now          func() time.Time
	Log          *slog.Logger
	// Jitter gives a number in [0, 1); nil: a random one.
	Jitter func() float64
	// Transport is for tests; nil: the network, with addresses checked.
	Transport http.RoundTripper
}

// Sender sends deliveries. One goroutine, that of Run, owns it.
type Sender struct {
	Options
	client  *http.Client
	wake    chan struct{}
	results chan result
	flying  map[lane]bool
}

// lane is what has one delivery under way at a time: a session's to one URL.
type lane struct{ session, url string }

type result struct {
	delivery profiles.Delivery
	err      error
}

// New makes a Sender.
func New(o Options) *Sender {
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Transport == nil {
		o.Transport = network(o.AllowPrivate)
	}
	return &Sender{Options: o, wake: make(chan struct{}, 1), results: make(chan result, atOnce), flying: map[lane]bool{},
		client: &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Wake tells that there may be something new to send.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends. What is under way then is given up, and is sent again
// by the next daemon; what was delivered is recorded all the same.
func (s *Sender) Run(ctx context.Context) {
	for {
		timer := time.NewTimer(s.dispatch(ctx))
		select {
		case <-s.wake:
		case <-timer.C:
		case r := <-s.results:
			s.finish(ctx, r)
		case <-ctx.Done():
			timer.Stop()
			for range s.flying {
				if r := <-s.results; r.err == nil {
					s.last(ctx, r)
				}
			}
			return
		}
		timer.Stop()
	}
}

// last records a delivery while the daemon stops.
func (s *Sender) last(ctx context.Context, r result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookAgain)
	defer cancel()
	a := profiles.Attempt{State: profiles.DeliveryDelivered, At: s.Now()}
	if err := s.Queue.FinishAttempt(ctx, r.delivery, a); err != nil {
		s.Log.Warn("a webhook was delivered and will be again: it could not be recorded", "delivery", r.delivery.ID, "error", err)
	}
}

// dispatch begins what is due and has room, and tells after what time to look
// again at the latest.
func (s *Sender) dispatch(ctx context.Context) time.Duration {
	if len(s.flying) >= atOnce {
		return time.Hour // a result comes first
	}
	now := s.Now()
	// As many more as are under way, for those are among them.
	due, err := s.Queue.DueDeliveries(ctx, now, now.Add(outOfReach), atOnce+len(s.flying))
	if err != nil {
		return s.failed(ctx, err)
	}
	for _, d := range due {
		at := lane{d.SessionID, d.URL}
		if s.flying[at] {
			continue
		}
		if len(s.flying) >= atOnce {
			return time.Hour
		}
		s.flying[at] = true
		go func() { s.results <- result{d, s.send(ctx, d)} }()
	}
	next, err := s.Queue.NextDelivery(ctx, now)
	switch {
	case err != nil:
		return s.failed(ctx, err)
	case next.IsZero():
		return time.Hour
	}
	return min(next.Sub(now), time.Hour)
}

func (s *Sender) failed(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		s.Log.Error("the queue of webhooks cannot be read", "error", err)
	}
	return lookAgain
}

// finish records what became of an attempt.
func (s *Sender) finish(ctx context.Context, r result) {
	d, now := r.delivery, s.Now()
	a := profiles.Attempt{State: profiles.DeliveryDelivered, At: now}
	if r.err != nil {
		a.State, a.Error, a.NextAt = profiles.DeliveryPending, r.err.Error(), now.Add(s.pause(d.Attempts-d.Resent))
		if a.NextAt.Sub(d.Since) > GiveUpAfter {
			a.State, a.NextAt = profiles.DeliveryFailed, time.Time{}
			a.Error = fmt.Sprintf("given up after %s: %s", GiveUpAfter, a.Error)
		}
	}
	err := s.Queue.FinishAttempt(ctx, d, a)
	if err == nil || ctx.Err() != nil {
		delete(s.flying, lane{d.SessionID, d.URL})
		if err != nil && r.err == nil {
			s.last(ctx, r) // the daemon stopped while it was recorded, or just before
		}
		return
	}
	// It stays in its lane, or it would be sent in a loop for as long as nothing can be written.
	s.Log.Error("an attempt of a webhook could not be recorded", "delivery", d.ID, "error", err)
	go func() {
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
		s.results <- r
	}()
}

// pause is how long to wait after a failed attempt that had so many before it:
// twice as long each time, and up to half of that more or less.
func (s *Sender) pause(attempts int) time.Duration {
	base := min(firstPause<<min(attempts, 20), longestPause)
	return base/2 + time.Duration(s.Jitter()*float64(base))
}
