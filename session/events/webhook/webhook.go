// Package webhook sends the webhook deliveries that the catalogue queues, signed as in
// Standard Webhooks. It retries until the receiver answers 2xx or GiveUpAfter has passed.
// It does not know what the deliveries are about.
package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/profiles"
)

const (
	// GiveUpAfter is how long a delivery is retried.
	GiveUpAfter = 24 * time.Hour

	attemptTimeout = 10 * time.Second
	maxConcurrent  = 8 // deliveries that are sent at the same time
	firstPause     = 5 * time.Second
	longestPause   = time.Hour
	farAhead       = 3 * longestPause / 2 // a delivery that is due later than this is sent now: the clock was set back
	excerptBytes   = 200                  // of an answer that was not 2xx
	retryDelay     = 5 * time.Second
	// longestSleep is the longest time between two looks at the queue. Nothing wakes the sender
	// for what another node has queued that has died or stopped since.
	longestSleep = time.Minute
)

// Queue is what a sender needs of the catalogue; see [profiles.DeliveryStore].
type Queue interface {
	DueDeliveries(ctx context.Context, now, beyond time.Time, limit int) ([]profiles.Delivery, error)
	NextDelivery(ctx context.Context, now time.Time) (time.Time, error)
	FinishAttempt(ctx context.Context, d profiles.Delivery, a profiles.Attempt) error
}

// Options are the settings of a Sender.
type Options struct {
	Queue Queue
	// Secrets has those that sign a delivery, newest first.
	Secrets interface {
		For(ctx context.Context, d profiles.Delivery) ([]Secret, error)
	}
	Egress egress.Policy // where webhooks may be sent
	Now    func() time.Time
	Log    *slog.Logger
	// Jitter returns a number in [0, 1); nil: a random one.
	Jitter func() float64
	// Transport is for tests; nil: the network, with checked addresses.
	Transport http.RoundTripper
}

// Sender sends deliveries. Only the goroutine of Run uses its fields.
type Sender struct {
	Options
	client   *http.Client
	wake     chan struct{}
	results  chan result
	inFlight map[lane]bool
}

// lane identifies a session's deliveries to one URL. They are sent one at a time.
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
		o.Transport = network(o.Egress)
	}
	return &Sender{Options: o, wake: make(chan struct{}, 1), results: make(chan result, maxConcurrent), inFlight: map[lane]bool{},
		client: &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Wake makes the sender look for new deliveries. It does not wait.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends deliveries until ctx ends. Attempts that are running then are abandoned, and
// the next daemon repeats them. Those that succeed are still recorded.
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
			for range s.inFlight {
				if r := <-s.results; r.err == nil {
					s.recordLast(ctx, r)
				}
			}
			return
		}
		timer.Stop()
	}
}

// recordLast records a successful delivery while the daemon stops.
func (s *Sender) recordLast(ctx context.Context, r result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryDelay)
	defer cancel()
	a := profiles.Attempt{State: profiles.DeliveryDelivered, At: s.Now()}
	if err := s.Queue.FinishAttempt(ctx, r.delivery, a); err != nil {
		s.Log.Warn("a webhook delivery could not be recorded, so it will be sent again", "delivery", r.delivery.ID, "error", err)
	}
}

// dispatch starts the deliveries that are due, up to maxConcurrent. It returns the
// longest time until the next look.
func (s *Sender) dispatch(ctx context.Context) time.Duration {
	if len(s.inFlight) >= maxConcurrent {
		return time.Hour // a result arrives first
	}
	now := s.Now()
	// The running ones are still due too, so ask for that many more.
	due, err := s.Queue.DueDeliveries(ctx, now, now.Add(farAhead), maxConcurrent+len(s.inFlight))
	if err != nil {
		return s.failed(ctx, err)
	}
	for _, d := range due {
		at := lane{d.SessionID, d.URL}
		if s.inFlight[at] {
			continue
		}
		if len(s.inFlight) >= maxConcurrent {
			return time.Hour
		}
		s.inFlight[at] = true
		go func() { s.results <- result{d, s.send(ctx, d)} }()
	}
	next, err := s.Queue.NextDelivery(ctx, now)
	switch {
	case err != nil:
		return s.failed(ctx, err)
	case next.IsZero():
		return longestSleep
	}
	return min(next.Sub(now), longestSleep)
}

func (s *Sender) failed(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		s.Log.Error("cannot read the queue of webhook deliveries; trying again", "error", err)
	}
	return retryDelay
}

// finish records the result of an attempt.
func (s *Sender) finish(ctx context.Context, r result) {
	d, now := r.delivery, s.Now()
	a := profiles.Attempt{State: profiles.DeliveryDelivered, At: now}
	if r.err != nil {
		a.State, a.Error, a.NextAt = profiles.DeliveryPending, r.err.Error(), now.Add(s.pause(d.Attempts-d.Resent))
		if a.NextAt.Sub(d.Since) > GiveUpAfter {
			a.State, a.NextAt = profiles.DeliveryFailed, time.Time{}
			a.Error = fmt.Sprintf("abandoned after %s: %s", GiveUpAfter, a.Error)
		}
	}
	err := s.Queue.FinishAttempt(ctx, d, a)
	if err == nil || ctx.Err() != nil {
		delete(s.inFlight, lane{d.SessionID, d.URL})
		if err != nil && r.err == nil {
			s.recordLast(ctx, r) // the daemon stopped during the recording or just before
		}
		return
	}
	// The lane stays taken. Otherwise the delivery would be sent in a loop while nothing
	// can be recorded.
	s.Log.Error("cannot record an attempt of a webhook delivery; trying again", "delivery", d.ID, "error", err)
	go func() {
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
		}
		s.results <- r
	}()
}

// pause returns how long to wait after a failed attempt. It doubles with each earlier
// attempt and varies by up to half of that.
func (s *Sender) pause(attempts int) time.Duration {
	base := min(firstPause<<min(attempts, 20), longestPause)
	return base/2 + time.Duration(s.Jitter()*float64(base))
}
