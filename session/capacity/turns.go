package capacity

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// Turns let a bounded number of calls run at once, one of each user, so that no
// user's many calls keep others waiting. Its methods are safe for concurrent use.
type Turns struct {
	free chan struct{} // has one for each call that runs

	mu    sync.Mutex
	users map[string]*userTurn
}

// userTurn is one user's; it is there while a call of the user runs or waits.
type userTurn struct {
	running chan struct{} // has one while a call of the user runs
	callers int
}

// NewTurns makes Turns that let n calls run at once.
func NewTurns(n int) *Turns {
	return &Turns{free: make(chan struct{}, n), users: map[string]*userTurn{}}
}

// Take waits for a user's turn until ctx ends, which is a timeout. leave gives the
// turn back, once.
func (t *Turns) Take(ctx context.Context, userID string) (leave func(), err error) {
	t.mu.Lock()
	u := t.users[userID]
	if u == nil {
		u = &userTurn{running: make(chan struct{}, 1)}
		t.users[userID] = u
	}
	u.callers++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if u.callers--; u.callers == 0 {
			delete(t.users, userID)
		}
	}
	timeout := fault.New(fault.Timeout, "capacity.turn", "the request was given up while it waited for its turn")
	select {
	case u.running <- struct{}{}:
	case <-ctx.Done():
		gone()
		return nil, timeout
	}
	select {
	case t.free <- struct{}{}:
	case <-ctx.Done():
		<-u.running
		gone()
		return nil, timeout
	}
	return func() { <-t.free; <-u.running; gone() }, nil
}
