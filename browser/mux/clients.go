package mux

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/fault"
)

// Admission is the number of an admission period, which a call of [Clients.Admit] begins. A
// caller reads it when it decides to accept a client and passes it to [Mux.Serve]. If
// [Clients.Close] was called in between, Serve closes the client too, even if the mux
// admits new clients again. The first period is the zero value.
type Admission uint64

// Clients holds the connected clients and decides whether new ones may connect. Its
// methods are safe for concurrent use.
type Clients struct {
	// ended reports whether the browser is ending or has ended, and with which error.
	ended func() (bool, error)
	done  <-chan struct{} // closed when the pipe has ended

	serves   sync.WaitGroup // guarded by mu against Add after the browser's end
	change   chan struct{}
	messages atomic.Uint64 // the number of messages that clients have sent

	mu        sync.Mutex
	all       map[*client]struct{}
	admission admission
}

// admission is the current admission state.
type admission struct {
	period Admission
	closed bool
	code   int // of the last Close
	reason string
}

func newClients(ended func() (bool, error), done <-chan struct{}) *Clients {
	return &Clients{ended: ended, done: done, change: make(chan struct{}, 1), all: map[*client]struct{}{}}
}

// Admission returns the number of the current admission period.
func (s *Clients) Admission() Admission {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admission.period
}

// Admit lets clients connect again after Close and begins a new admission period. It does
// nothing if Close was not called before.
func (s *Clients) Admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admission.closed {
		s.admission.closed = false
		s.admission.period++
	}
}

// Close closes every client's connection with a code and a reason. It waits until they
// have disconnected or ctx has ended. Until Admit, later clients are closed in the same
// way.
func (s *Clients) Close(ctx context.Context, code int, reason string) error {
	s.mu.Lock()
	s.admission.closed, s.admission.code, s.admission.reason = true, code, reason
	all := slices.Collect(maps.Keys(s.all))
	s.mu.Unlock()
	for _, c := range all {
		c.end(code, reason, nil, false)
	}
	for _, c := range all {
		select {
		case <-c.exited:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "mux.close_clients", "")
		}
	}
	return nil
}

// Count returns the number of connected clients.
func (s *Clients) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Changed returns a channel that gets a value after Count has changed. Several changes
// are merged into one value if the reader is slow. It is for one reader.
func (s *Clients) Changed() <-chan struct{} { return s.change }

// enter admits a client. If it returns false, the client has been ended, and its cause is
// the error that Serve returns.
func (s *Clients) enter(c *client, period Admission) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, err := s.ended()
	switch at := s.admission; {
	case ended:
		// Report the end of the browser, which caused the end of the client.
		c.end(CloseBrowserGone, "browser gone", fault.Wrap(errors.Join(errClosed, err),
			fault.BrowserFailed, "mux.serve", "the browser has ended"), false)
		return false
	case at.closed || period != at.period:
		c.end(at.code, at.reason, nil, false)
		return false
	}
	s.serves.Add(1)
	s.all[c] = struct{}{}
	s.changed()
	return true
}

func (s *Clients) exit(c *client) {
	s.mu.Lock()
	delete(s.all, c)
	s.changed()
	s.mu.Unlock()
	close(c.exited)
	s.serves.Done()
}

func (s *Clients) changed() {
	select {
	case s.change <- struct{}{}:
	default: // a pending value covers this change too
	}
}

// wait returns when every client has disconnected. It is called after the browser has
// ended, when no client can connect any more.
func (s *Clients) wait() {
	// A client that passed the check before the browser's end is counted once the lock is
	// free.
	s.mu.Lock()
	s.mu.Unlock() //nolint:staticcheck // the empty section is the wait
	s.serves.Wait()
}

// Clients are idle when they send no message for the time idlePeriod. A client that drives a
// page sends messages more often. The first message may take firstIdlePeriod, as the client
// gets its session's address first and then connects. A client that never pauses delays
// the caller until idleDeadline.
const (
	idlePeriod      = 100 * time.Millisecond
	firstIdlePeriod = 400 * time.Millisecond
	idleDeadline    = 3 * time.Second
)

// WaitIdle returns when clients have sent nothing for a short time, so that background work
// does not slow them down. It also returns after idleDeadline, and when ctx ends.
func (s *Clients) WaitIdle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, idleDeadline)
	defer cancel()
	beat := time.NewTicker(idlePeriod)
	defer beat.Stop()
	rest := firstIdlePeriod
	for before := s.messages.Load(); ; {
		select {
		case <-beat.C:
			now := s.messages.Load()
			rest -= idlePeriod
			if now == before && (now > 0 || rest <= 0) {
				return
			}
			before = now
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}
