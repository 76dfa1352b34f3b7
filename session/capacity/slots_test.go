package capacity

import (
	"context"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// queued waits until n callers wait for a slot.
func (s *slots) queued(t *testing.T, n int) {
	t.Helper()
	await(t, "a caller in the queue", func() bool { return s.waiting() == n })
}

// Waiting callers get slots in the order in which they came. A caller that gave up is
// skipped.
func TestSlotsFirstComeFirstServed(t *testing.T) {
	s := newSlots(1)
	if err := s.acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.acquire(t.Context(), false), fault.TooManySessions)
	served, left := make(chan int, 4), make(chan error, 1)
	leaving, leave := context.WithCancel(t.Context())
	for i := range 4 {
		go func() {
			if i == 1 {
				left <- s.acquire(leaving, true)
				return
			}
			if err := s.acquire(t.Context(), true); err != nil {
				t.Error(err)
			}
			served <- i
		}()
		s.queued(t, i+1)
	}
	leave()
	wantCode(t, <-left, fault.TooManySessions)
	s.queued(t, 3)
	for _, want := range []int{0, 2, 3} {
		s.release()
		if got := <-served; got != want {
			t.Errorf("caller %d got the slot, want caller %d", got, want)
		}
	}
	// A slot is free, but a new caller must not overtake those that wait.
	s.release()
	if err := s.acquire(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// A slot given to a caller that is leaving goes to the next caller.
func TestSlotsGivenWhileLeaving(t *testing.T) {
	s := newSlots(0)
	turn := make(chan struct{})
	s.queue = append(s.queue, turn)
	s.release()
	s.leave(turn)
	if err := s.acquire(t.Context(), false); err != nil {
		t.Errorf("the slot was lost: %v", err)
	}
}

func TestSlotsClose(t *testing.T) {
	s := newSlots(0)
	waiting := make(chan error, 1)
	go func() { waiting <- s.acquire(t.Context(), true) }()
	s.queued(t, 1)
	s.close()
	wantCode(t, <-waiting, fault.ShuttingDown)
	wantCode(t, s.acquire(t.Context(), true), fault.ShuttingDown)
}
