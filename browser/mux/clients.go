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

// Door is what clients come in by, from one [Clients.Admit] to the next. A caller
// takes it when it decides that a client may come, and gives it to
// [Mux.Serve]: if clients were sent away in between, the client is late and is
// sent away too, even where the mux serves others again by then. The first
// door is the zero value.
type Door uint64

// Clients are the clients that are connected, and who may still connect. Its methods
// are safe for concurrent use.
type Clients struct {
	// ended reports whether the browser is ending or has ended, and with which error.
	ended func() (bool, error)
	done  <-chan struct{} // closed when the pipe has ended

	serves sync.WaitGroup // guarded by mu against Add after the browser's end
	change chan struct{}
	asked  atomic.Uint64 // how many messages clients have sent

	mu       sync.Mutex
	all      map[*client]struct{}
	entrance entrance
}

// entrance is the door that is used now.
type entrance struct {
	door   Door
	shut   bool
	code   int // what the last Close gave
	reason string
}

func newClients(ended func() (bool, error), done <-chan struct{}) *Clients {
	return &Clients{ended: ended, done: done, change: make(chan struct{}, 1), all: map[*client]struct{}{}}
}

// Door is the one that is used now.
func (s *Clients) Door() Door {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entrance.door
}

// Admit lets clients come again after Close, by a new door. Without a Close before it
// does nothing.
func (s *Clients) Admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entrance.shut {
		s.entrance.shut = false
		s.entrance.door++
	}
}

// Close ends every client's connection with a code and a reason and
// waits until they are gone or ctx has ended. One that comes later is closed
// alike, until Admit.
func (s *Clients) Close(ctx context.Context, code int, reason string) error {
	s.mu.Lock()
	s.entrance.shut, s.entrance.code, s.entrance.reason = true, code, reason
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

// Count is how many clients are connected.
func (s *Clients) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Changed gives a value after Count has changed, one for many changes
// if nobody took it in between. It is for one reader.
func (s *Clients) Changed() <-chan struct{} { return s.change }

// enter lets a client in. One that must not come in has ended when enter
// returns false; its cause is Serve's error.
func (s *Clients) enter(c *client, door Door) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, err := s.ended()
	switch at := s.entrance; {
	case ended:
		// What there is to report is the browser's end, not the client's.
		c.end(CloseBrowserGone, "browser gone", fault.Wrap(errors.Join(errClosed, err),
			fault.BrowserFailed, "mux.serve", "the browser is gone"), false)
		return false
	case at.shut || door != at.door:
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
	default: // one change untold stands for all
	}
}

// wait returns when every client has gone. It is called after the browser has ended,
// so that none comes any more.
func (s *Clients) wait() {
	// A client that saw the browser before its end is counted once the lock is free.
	s.mu.Lock()
	s.mu.Unlock() //nolint:staticcheck // the empty section is the wait
	s.serves.Wait()
}

// A lull is a time of this length in which no client asks for anything: one that
// drives a page asks more often. The first may take longer to come: it is told of
// its session, and connects. A client that never rests is not waited for longer
// than the deadline.
const (
	lull         = 100 * time.Millisecond
	firstLull    = 400 * time.Millisecond
	lullDeadline = 3 * time.Second
)

// Lull returns when the clients leave Chrome alone for a moment, for work that
// nobody waits for. It returns at its deadline too, and when ctx ends.
func (s *Clients) Lull(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lullDeadline)
	defer cancel()
	beat := time.NewTicker(lull)
	defer beat.Stop()
	rest := firstLull
	for before := s.asked.Load(); ; {
		select {
		case <-beat.C:
			now := s.asked.Load()
			rest -= lull
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
