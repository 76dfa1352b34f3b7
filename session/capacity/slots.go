package capacity

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// slots bounds how many sessions live at once. Waiting callers get slots in the order in
// which they came.
type slots struct {
	mu     sync.Mutex
	free   int
	queue  []chan struct{} // closed when the caller has a slot
	closed bool
}

func newSlots(n int) *slots { return &slots{free: n} }

// acquire takes a slot. If wait is true it waits for one until ctx ends. Without a slot
// the error is too_many_sessions.
func (s *slots) acquire(ctx context.Context, wait bool) error {
	const op = "capacity.acquire"
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fault.New(fault.ShuttingDown, op, "the daemon is shutting down")
	}
	if s.free > 0 && len(s.queue) == 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	if !wait {
		s.mu.Unlock()
		return fault.New(fault.TooManySessions, op, "all session slots are in use; end a session, wait with wait_seconds, or raise --max-sessions")
	}
	turn := make(chan struct{})
	s.queue = append(s.queue, turn)
	s.mu.Unlock()
	select {
	case <-turn:
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return fault.New(fault.ShuttingDown, op, "the daemon is shutting down")
		}
		return nil
	case <-ctx.Done():
		s.leave(turn)
		return fault.New(fault.TooManySessions, op, "all session slots stayed in use for wait_seconds; end a session, or raise --max-sessions")
	}
}

// leave stops waiting. If the caller was given a slot at the same time, the next caller
// gets it.
func (s *slots) leave(turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range s.queue {
		if t == turn {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			return
		}
	}
	if !s.closed {
		s.next()
	}
}

// acquireUnlessLast takes a slot if at least one more stays free. It reports whether it
// took one.
func (s *slots) acquireUnlessLast() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.free < 2 || len(s.queue) > 0 {
		return false
	}
	s.free--
	return true
}

// release gives a slot back.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next()
}

func (s *slots) next() {
	if len(s.queue) == 0 {
		s.free++
		return
	}
	close(s.queue[0])
	s.queue = s.queue[1:]
}

// left returns the number of free slots.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
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
	for _, turn := range s.queue {
		close(turn)
	}
	s.queue = nil
}
