package capacity

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// slots bound how many sessions live at once. Those who wait for a slot get one in
// the order in which they came.
type slots struct {
	mu     sync.Mutex
	free   int
	queue  []chan struct{} // closed when the slot is given
	closed bool
}

func newSlots(n int) *slots { return &slots{free: n} }

// acquire takes a slot, waiting for one until ctx ends: too_many_sessions
// then, and at once where wait is false.
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
		return fault.New(fault.TooManySessions, op, "every place is taken; wait_seconds waits for one")
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
		return fault.New(fault.TooManySessions, op, "no place came free within wait_seconds")
	}
}

// leave gives up waiting. A slot that was given in the same moment goes to the next.
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

// acquireUnlessLast takes a slot where another one is left for a session, and
// reports whether it did.
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

// left is how many slots nobody has.
func (s *slots) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// waiting is how many callers wait.
func (s *slots) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// close turns everybody away, those who wait too.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, turn := range s.queue {
		close(turn)
	}
	s.queue = nil
}
