package capacity

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/quota"
)

// queued waits until n callers wait for a slot.
func (s *slots) queued(t *testing.T, n int) {
	t.Helper()
	await(t, "a caller in the queue", func() bool { return s.waiting() == n })
}

// Waiting callers get slots in the order in which they came. A caller that gave up is
// skipped.
func TestSlotsFirstComeFirstServed(t *testing.T) {
	s := newSlots(1, nil)
	if err := s.acquire(t.Context(), Claim{}, false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.acquire(t.Context(), Claim{}, false), fault.TooManySessions)
	served, left := make(chan int, 4), make(chan error, 1)
	leaving, leave := context.WithCancel(t.Context())
	for i := range 4 {
		go func() {
			if i == 1 {
				left <- s.acquire(leaving, Claim{}, true)
				return
			}
			if err := s.acquire(t.Context(), Claim{}, true); err != nil {
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
		s.release(Claim{})
		if got := <-served; got != want {
			t.Errorf("caller %d got the slot, want caller %d", got, want)
		}
	}
	// A slot is free, but a new caller must not overtake those that wait.
	s.release(Claim{})
	if err := s.acquire(t.Context(), Claim{}, false); err != nil {
		t.Error(err)
	}
}

// A slot given to a caller that is leaving goes to the next caller.
func TestSlotsGivenWhileLeaving(t *testing.T) {
	s := newSlots(0, nil)
	w := &waiter{got: make(chan struct{})}
	s.queue = append(s.queue, w)
	s.release(Claim{})
	_ = s.leave(w, "test") // it has no limit
	if err := s.acquire(t.Context(), Claim{}, false); err != nil {
		t.Errorf("the slot was lost: %v", err)
	}
}

func TestSlotsClose(t *testing.T) {
	s := newSlots(0, nil)
	waiting := make(chan error, 1)
	go func() { waiting <- s.acquire(t.Context(), Claim{}, true) }()
	s.queued(t, 1)
	s.close()
	wantCode(t, <-waiting, fault.ShuttingDown)
	wantCode(t, s.acquire(t.Context(), Claim{}, true), fault.ShuttingDown)
}

// Users who wait are served in turn, however many calls each waits with. One who comes later
// is not behind the many calls of another.
func TestSlotsInTurnBetweenUsers(t *testing.T) {
	s := newSlots(0, nil)
	served := make(chan string, 20)
	wait := func(user string) {
		n := s.waiting()
		go func() {
			if err := s.acquire(t.Context(), Claim{UserID: user}, true); err != nil {
				t.Error(err)
			}
			served <- user
		}()
		s.queued(t, n+1)
	}
	for range 8 {
		wait("greedy")
	}
	for range 2 {
		wait("alice")
		wait("bob")
	}
	var order []string
	for range 12 {
		s.release(Claim{UserID: "gone"})
		order = append(order, <-served)
	}
	want := "greedy alice bob greedy alice bob greedy greedy greedy greedy greedy greedy"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("served %s, want %s", got, want)
	}
	if len(s.served) > 0 {
		t.Errorf("it remembers %v", s.served)
	}
}

// The keys of a user are served in turn too: a key that waits with many calls does not take
// the wait time of the user's other keys.
func TestSlotsInTurnBetweenKeys(t *testing.T) {
	s := newSlots(0, nil)
	served := make(chan string, 20)
	wait := func(user, key string) {
		n := s.waiting()
		go func() {
			if err := s.acquire(t.Context(), Claim{UserID: user, KeyID: key}, true); err != nil {
				t.Error(err)
			}
			served <- key
		}()
		s.queued(t, n+1)
	}
	for range 8 {
		wait("alice", "greedy")
	}
	for range 2 {
		wait("alice", "modest")
		wait("alice", "other")
		wait("bob", "bob")
	}
	counts := map[string]int{} // of the first 8 slots
	for i := range 14 {
		s.release(Claim{})
		if key := <-served; i < 8 {
			counts[key]++
		}
	}
	if want := (map[string]int{"greedy": 2, "modest": 2, "other": 2, "bob": 2}); !maps.Equal(counts, want) {
		t.Errorf("of the first 8 slots the keys got %v, want %v", counts, want)
	}
	if len(s.served) > 0 {
		t.Errorf("it remembers %v", s.served)
	}
}

// limited returns the claim of a user who may have n sessions, and what it counts for.
func limited(user string, n int64) (Claim, quota.Share) {
	limits := quota.Limits(quota.Sessions, user, quota.Quotas{Sessions: &n}, "", quota.Quotas{})
	return Claim{UserID: user, Limits: limits}, limits[0].Share
}

// A user at the limit gets no slot, although some are free, and does not hold up others. The
// next of its slots that is given back goes to its own waiting call.
func TestSlotsOfOneUser(t *testing.T) {
	s := newSlots(10, nil)
	claim, alice := limited("alice", 2)
	bob, _ := limited("bob", 1)
	var got atomic.Int32
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if err := s.acquire(t.Context(), claim, false); err == nil {
				got.Add(1)
			} else if !fault.Is(err, fault.QuotaExceeded) {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if got.Load() != 2 || s.of(alice) != 2 {
		t.Fatalf("50 calls at once got %d slots, and the user has %d", got.Load(), s.of(alice))
	}
	waiting := make(chan error, 1)
	go func() { waiting <- s.acquire(t.Context(), claim, true) }()
	s.queued(t, 1)
	if err := s.acquire(t.Context(), bob, false); err != nil {
		t.Errorf("another user: %v", err)
	}
	s.release(bob)
	if s.waiting() != 1 {
		t.Error("a call over the limit got another user's slot")
	}
	s.release(claim)
	if err := <-waiting; err != nil || s.of(alice) != 2 {
		t.Errorf("the waiting call: %v; the user has %d", err, s.of(alice))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	wantCode(t, s.acquire(ended, claim, true), fault.QuotaExceeded)
	s.release(claim)
	s.release(claim)
	if s.of(alice) != 0 || len(s.held) > 0 || s.left() != 10 {
		t.Errorf("%d slots are left, and users have %v", s.left(), s.held)
	}
}

// Others learn when the last slot is taken, and when one is free again.
func TestSlotsReportFull(t *testing.T) {
	reported := 0
	s := newSlots(2, func() { reported++ })
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() { s.take(Claim{}) }, 0},
		{func() { s.take(Claim{}) }, 1},
		{func() { s.release(Claim{}) }, 2},
		{func() { s.release(Claim{}) }, 2},
	} {
		if step.do(); reported != step.want {
			t.Errorf("step %d: reported %d times, want %d", i, reported, step.want)
		}
	}
}
