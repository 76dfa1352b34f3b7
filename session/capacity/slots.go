package capacity

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/quota"
)

// Claim says for whom a slot is taken. The zero value is for the daemon's own work.
type Claim struct {
	UserID, KeyID string
	// Limits are what the session counts for until the slot is given back. Only for those
	// of [quota.Sessions] a caller waits.
	Limits []quota.Limit
}

// slots bounds how many sessions live at once, of all users, and of each user and key.
// Waiting callers get slots in turn between their users, so that a user who waits with many
// calls does not delay others, and in turn between the keys of a user. The calls of one key
// are served in the order in which they came.
type slots struct {
	mu     sync.Mutex
	free   int
	queue  []*waiter // in the order in which they came
	held   map[quota.Share]int64
	served map[turnOf]int // when a waiting call last got a slot, as a number of turns
	turn   int
	full   func() // called when the last slot is taken, and when one is free again; may be nil
	closed bool
}

// turnOf is who takes turns: a user, or a key of a user.
type turnOf struct{ user, key string }

// waiter is a caller that waits.
type waiter struct {
	Claim
	got chan struct{} // closed when it has a slot, or when slots is closed
}

func newSlots(n int, full func()) *slots {
	return &slots{free: n, full: full, held: map[quota.Share]int64{}, served: map[turnOf]int{}}
}

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
	if s.free > 0 && over == nil && s.first() < 0 {
		s.take(c)
		s.mu.Unlock()
		return nil
	}
	if over != nil && (!wait || over.Name != quota.Sessions) {
		err := over.Error(op, s.held[over.Share])
		s.mu.Unlock()
		return err
	}
	if !wait {
		s.mu.Unlock()
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
		if err := s.leave(w, op); err != nil {
			return err
		}
		return fault.New(fault.TooManySessions, op, "all session slots stayed in use for wait_seconds; end a session, or raise --max-sessions")
	}
}

// over returns the limit of a claim that is reached; nil if there is none. The caller holds
// the lock.
func (s *slots) over(c Claim) *quota.Limit {
	for i, l := range c.Limits {
		if l.Reached(s.held[l.Share]) {
			return &c.Limits[i]
		}
	}
	return nil
}

// take gives a claim a free slot. The caller holds the lock.
func (s *slots) take(c Claim) {
	s.free--
	for _, l := range c.Limits {
		s.held[l.Share]++
	}
	s.reportFull(s.free == 0)
}

// reportFull calls full if it is so that the slots have become full, or are no longer. The caller
// holds the lock.
func (s *slots) reportFull(changed bool) {
	if changed && s.full != nil {
		s.full()
	}
}

// leave stops waiting. If a limit of the caller is reached, it returns quota_exceeded. If
// the caller was given a slot at the same time, the next caller gets it.
func (s *slots) leave(w *waiter, op string) (over error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.over(w.Claim); l != nil {
		over = l.Error(op, s.held[l.Share])
	}
	if i := slices.Index(s.queue, w); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.forget(w.Claim)
		return over
	}
	if !s.closed {
		s.giveBack(w.Claim)
	}
	return nil
}

// acquireUnlessLast takes a slot for the daemon's own work if at least one more stays
// free. It reports whether it took one.
func (s *slots) acquireUnlessLast() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.free < 2 || s.first() >= 0 {
		return false
	}
	s.take(Claim{})
	return true
}

// release gives back the slot of a claim.
func (s *slots) release(c Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveBack(c)
}

// giveBack is release. The caller holds the lock.
func (s *slots) giveBack(c Claim) {
	s.free++
	s.reportFull(s.free == 1)
	for _, l := range c.Limits {
		if s.held[l.Share]--; s.held[l.Share] == 0 {
			delete(s.held, l.Share)
		}
	}
	for s.free > 0 {
		i := s.first()
		if i < 0 {
			return
		}
		w := s.queue[i]
		s.queue = slices.Delete(s.queue, i, i+1)
		s.take(w.Claim)
		s.turn++
		s.served[turnOf{user: w.UserID}], s.served[turnOf{w.UserID, w.KeyID}] = s.turn, s.turn
		s.forget(w.Claim)
		close(w.got)
	}
}

// first returns the index of the caller that is next: of those below their limits, the
// first of the user who was served the longest ago, and there of the key that was served
// the longest ago. It returns -1 for none. The caller holds the lock.
func (s *slots) first() int {
	found, user, key := -1, math.MaxInt, math.MaxInt
	for i, w := range s.queue {
		u, k := s.served[turnOf{user: w.UserID}], s.served[turnOf{w.UserID, w.KeyID}]
		if (u < user || u == user && k < key) && s.over(w.Claim) == nil {
			found, user, key = i, u, k
		}
	}
	return found
}

// forget forgets when a user and a key were served, unless calls of them wait. The caller
// holds the lock.
func (s *slots) forget(c Claim) {
	if !slices.ContainsFunc(s.queue, func(w *waiter) bool { return w.UserID == c.UserID }) {
		maps.DeleteFunc(s.served, func(t turnOf, _ int) bool { return t.user == c.UserID })
	}
}

// left returns the number of free slots.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// of returns how large a share is.
func (s *slots) of(share quota.Share) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[share]
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
