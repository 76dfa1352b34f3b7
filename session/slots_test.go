package session

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
)

// queued waits until n callers stand in the queue.
func (s *slots) queued(t *testing.T, n int) {
	t.Helper()
	await(t, "a caller in the queue", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.queue) == n
	})
}

// Places go to those who wait in the order in which they came; who leaves is
// passed over.
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
			t.Errorf("%d was served, it was %d's turn", got, want)
		}
	}
	// A place is free, but who comes must not overtake those who wait.
	s.release()
	if err := s.acquire(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// A place that was given in the moment in which its taker left goes on.
func TestSlotsGivenWhileLeaving(t *testing.T) {
	s := newSlots(0)
	turn := make(chan struct{})
	s.queue = append(s.queue, turn)
	s.release()
	s.leave(turn)
	if err := s.acquire(t.Context(), false); err != nil {
		t.Errorf("the place was lost: %v", err)
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

// A create that waits gets the place of the session that ends; one that does
// not, or whose client hangs up, does not.
func TestCreateWaitsForAPlace(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSessions = 1 })
	first := r.create(alice, nil).ID
	_, err := r.Create(t.Context(), alice, asking(nil))
	wantCode(t, err, fault.TooManySessions)
	_, err = r.Create(t.Context(), alice, asking(func(c *Create) { c.Wait = time.Millisecond }))
	wantCode(t, err, fault.TooManySessions)

	hangUp, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := r.Create(hangUp, alice, asking(func(c *Create) { c.Wait = time.Minute }))
		left <- err
	}()
	r.slots.queued(t, 1)
	cancel()
	wantCode(t, <-left, fault.TooManySessions)

	got := make(chan Info, 1)
	go func() {
		info, err := r.Create(t.Context(), alice, asking(func(c *Create) { c.Wait = time.Minute }))
		if err != nil {
			t.Error(err)
		}
		got <- info
	}()
	r.slots.queued(t, 1)
	r.end(alice, first, none)
	second := <-got
	r.end(alice, second.ID, none)
	if n := r.Counts().Live; n != 0 {
		t.Errorf("%d live", n)
	}
}

// A create that fails gives its place back and leaves nothing behind.
func TestCreateFails(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSessions = 1 })
	_, snap := r.saved(alice, asDefault)
	noRoom := fault.New(fault.StoreFull, "fake", "no room")
	for name, test := range map[string]struct {
		damage func()
		ask    func(*Create)
		code   fault.Code
	}{
		"no directory":     {func() { r.browsers.fails(noRoom, "dir") }, nil, fault.StoreFull},
		"no Chrome":        {func() { r.browsers.fails(fault.New(fault.BrowserFailed, "", ""), "fresh") }, nil, fault.BrowserFailed},
		"no restore":       {func() { r.browsers.fails(fault.New(fault.BrowserFailed, "", ""), "restored") }, fromAlice, fault.BrowserFailed},
		"no record":        {func() { r.catalogue.fails(noRoom, "CreateSession") }, nil, fault.StoreFull},
		"no record of one": {func() { r.catalogue.fails(noRoom, "CreateSession") }, fromAlice, fault.StoreFull},
		"no archive":       {func() { r.store.FailAt(1, 2, fault.New(fault.StoreFailed, "", "")) }, fromAlice, fault.StoreFailed},
	} {
		t.Run(name, func(t *testing.T) {
			test.damage()
			id := "chosen-" + snap[30:]
			_, err := r.Create(t.Context(), alice, asking(func(c *Create) {
				c.SessionID = id
				if test.ask != nil {
					test.ask(c)
				}
			}))
			wantCode(t, err, test.code)
			r.browsers.works()
			r.catalogue.works()
			r.store.FailAt(0, 0, nil)
			if n := r.dirs(); n != 0 {
				t.Errorf("%d run directories are left", n)
			}
			for _, c := range r.browsers.all() {
				if !c.dead() {
					t.Error("a Chrome lives on")
				}
			}
			_, err = r.Get(t.Context(), alice, id)
			wantCode(t, err, fault.SessionNotFound)
		})
	}
	r.holds(snap)
	// The place is free again.
	r.end(alice, r.create(alice, fromAlice).ID, none)
}

func fromAlice(c *Create) { c.FromDefaultOf = "alice" }
