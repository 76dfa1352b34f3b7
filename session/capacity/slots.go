package capacity

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// Claim says for whom a slot is taken.
type Claim struct {
	UserID string // "": for the daemon's own work
	// Most is how many slots the user may have, with this one; 0: no limit.
	Most int
}

// slots bounds how many sessions live at once, of all users and of each. Waiting callers
// get slots in turn between their users, so that a user who waits with many calls does not
// delay others. The calls of one user are served in the order in which they came.
type slots struct {
	mu     sync.Mutex
	free   int
	queue  []*waiter      // in the order in which they came
	held   map[string]int // by user
	served map[string]int // when a waiting call of the user last got a slot, as a number of turns
	turn   int
	closed bool
}

// waiter is a caller that waits.
type waiter struct {
	Claim
	got chan struct{} // closed when it has a slot, or when slots is closed
}

func newSlots(n int) *slots { return &slots{free: n, held: map[string]int{}, served: map[string]int{}} }

// acquire takes a slot. If wait is true it waits for one until ctx ends. Without a slot
// the error is too_many_sessions, or quota_exceeded if only the claim's limit is reached.
func (s *slots) acquire(ctx context.Context, c Claim, wait bool) error {
	const op = "capacity.acquire"
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fault.New(fault.ShuttingDown, op, "the daemon is shutting down")
	}
	over := s.over(c)
	if s.free > 0 && !over && s.first() < 0 {
		s.take(c.UserID)
		s.mu.Unlock()
		return nil
	}
	if !wait {
		s.mu.Unlock()
		if over {
			return fault.New(fault.QuotaExceeded, op, "quotas.sessions: the user has %d live sessions, which is the limit; end one, or wait with wait_seconds", c.Most)
		}
		return fault.New(fault.TooManySessions, op, "all session slots are in use; end a session, wait with wait_seconds, or raise --max-sessions")
	}
	w := &waiter{c, make(chan struct{})}
	s.queue = append(s.queue, w)
	s.mu.Unlock()
	select {
	case <-w.got:
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return fault.New(fault.ShuttingDown, op, "the daemon is shutting down")
		}
		return nil
	case <-ctx.Done():
		if over = s.leave(w); over {
			return fault.New(fault.QuotaExceeded, op, "quotas.sessions: the user had %d live sessions, which is the limit, for wait_seconds; end one", c.Most)
		}
		return fault.New(fault.TooManySessions, op, "all session slots stayed in use for wait_seconds; end a session, or raise --max-sessions")
	}
}

// over reports whether a claim's limit is reached. The caller holds the lock.
func (s *slots) over(c Claim) bool { return c.Most > 0 && s.held[c.UserID] >= c.Most }

// take gives a user a free slot. The caller holds the lock.
func (s *slots) take(userID string) {
	s.free--
	s.held[userID]++
}

// leave stops waiting and reports whether the caller's limit is reached. If the caller was
// given a slot at the same time, the next caller gets it.
func (s *slots) leave(w *waiter) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	over = s.over(w.Claim)
	if i := slices.Index(s.queue, w); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.forget(w.UserID)
		return over
	}
	if !s.closed {
		s.giveBack(w.UserID)
	}
	return false
}

// acquireUnlessLast takes a slot for the daemon's own work if at least one more stays
// free. It reports whether it took one.
func (s *slots) acquireUnlessLast() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.free < 2 || s.first() >= 0 {
		return false
	}
	s.take("")
	return true
}

// release gives back a slot of a user.
func (s *slots) release(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveBack(userID)
}

// giveBack is release. The caller holds the lock.
func (s *slots) giveBack(userID string) {
	s.free++
	if s.held[userID]--; s.held[userID] == 0 {
		delete(s.held, userID)
	}
	for s.free > 0 {
		i := s.first()
		if i < 0 {
			return
		}
		w := s.queue[i]
		s.queue = slices.Delete(s.queue, i, i+1)
		s.take(w.UserID)
		s.turn++
		s.served[w.UserID] = s.turn
		s.forget(w.UserID)
		close(w.got)
	}
}

// first returns the index of the caller that is next: of those below their limits, the
// first of the user who was served the longest ago. It returns -1 for none. The caller
// holds the lock.
func (s *slots) first() int {
	found, least := -1, math.MaxInt
	for i, w := range s.queue {
		if at := s.served[w.UserID]; at < least && !s.over(w.Claim) {
			found, least = i, at
		}
	}
	return found
}

// forget forgets when a user was served, unless calls of the user wait. The caller holds
// the lock.
func (s *slots) forget(userID string) {
	if !slices.ContainsFunc(s.queue, func(w *waiter) bool { return w.UserID == userID }) {
		delete(s.served, userID)
	}
}

// left returns the number of free slots.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// of returns how many slots a user has.
func (s *slots) of(userID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[userID]
}

// waiting returns how many callers wait for a slot.
func (s *slots) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// close refuses all callers, including those that wait.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, w := range s.queue {
		close(w.got)
	}
	s.queue = nil
}
