package pool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/pool"
)

// spares is a pool of fake Chromes that the test can see.
type spares struct {
	*pool.Spares[*chrome]
	started chan *chrome
}

func newSpares(t *testing.T, limits pool.Limits, capacity int, fails *error) spares {
	s := spares{started: make(chan *chrome, 10)}
	s.Spares = pool.NewSpares(limits, func() int { return capacity }, func(context.Context) (*chrome, error) {
		if fails != nil && *fails != nil {
			return nil, *fails
		}
		c := newChrome()
		s.started <- c
		return c, nil
	})
	t.Cleanup(s.Close)
	return s
}

// has waits until so many are ready.
func (s spares) has(t *testing.T, n int) {
	t.Helper()
	for tick := time.Tick(time.Millisecond); s.Len() != n; {
		select {
		case <-tick:
		case <-t.Context().Done():
			t.Fatalf("%d spares, want %d", s.Len(), n)
		}
	}
}

func TestSparesAreReplacedWhenAsked(t *testing.T) {
	s := newSpares(t, pool.Limits{Size: 2, Age: time.Hour}, 9, nil)
	if _, ok := s.Take(); ok {
		t.Error("a spare before the first Refill")
	}
	s.Refill()
	s.has(t, 2)
	first, second := <-s.started, <-s.started
	if c, ok := s.Take(); !ok || c != first {
		t.Error("Take did not return the oldest")
	}
	if c, ok := s.Take(); !ok || c != second {
		t.Error("Take did not return the next")
	}
	// Take does not start further spares.
	if _, ok := s.Take(); ok || len(s.started) > 0 {
		t.Error("a spare was started without a Refill")
	}
	s.Refill()
	s.has(t, 2)
	third, fourth := <-s.started, <-s.started
	s.Keep(1)
	if !third.dead() || fourth.dead() || s.Len() != 1 {
		t.Errorf("third %v, fourth %v, %d kept", third.dead(), fourth.dead(), s.Len())
	}
	s.Close()
	if first.dead() || second.dead() || !fourth.dead() {
		t.Error("Close must end the spares in the pool and no others")
	}
	s.Refill()
	if _, ok := s.Take(); ok {
		t.Error("a closed pool returned a spare")
	}
}

// The pool starts no more spares than capacity allows, and replaces one that dies.
func TestADeadSpareIsReplaced(t *testing.T) {
	s := newSpares(t, pool.Limits{Size: 5, Age: time.Hour}, 1, nil)
	s.Refill()
	c := <-s.started
	s.has(t, 1)
	_ = c.Kill(t.Context())
	next := <-s.started
	s.has(t, 1)
	if got, ok := s.Take(); !ok || got != next {
		t.Error("Take returned the dead one, or none")
	}
	_ = next.Kill(t.Context())
}

func TestAnOldSpareIsReplaced(t *testing.T) {
	s := newSpares(t, pool.Limits{Size: 1, Age: 20 * time.Millisecond}, 9, nil)
	s.Refill()
	<-(<-s.started).Done()
	<-(<-s.started).Done()
}

// A failed start is repeated later, and does not delay Close.
func TestFailedStart(t *testing.T) {
	broken := errors.New("broken on purpose")
	s := newSpares(t, pool.Limits{Size: 1, Age: time.Hour}, 9, &broken)
	s.Refill()
	s.Close()
	if s.Len() != 0 {
		t.Error("Take returned a spare that did not start")
	}
}
