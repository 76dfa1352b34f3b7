package capacity

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// Turns lets a bounded number of calls run at once, and only one of each user, so that a
// user's many calls do not delay others. Its methods are safe for concurrent use.
type Turns struct {
	free chan struct{} // holds one token for each running call

	mu    sync.Mutex
	users map[string]*userTurn
}

// userTurn holds the calls of one user. It exists while a call of the user runs or waits.
type userTurn struct { // holds one token while a call of the user runs
	running chan struct{} // has one while a call of the user runs
	callers int
}

// NewTurns makes Turns that let n calls run at once.
func NewTurns(n int) *Turns {
	return &Turns{free: make(chan struct{}, n), users: map[string]*userTurn{}}
}

// Take waits for a user's turn until ctx ends; the error is then timeout. The caller
// calls leave once to give the turn back.
func (t *Turns) Take(ctx context.Context, userID string) (leave func(), err error) {
	t.mu.Lock()
	u := t.users[userID]
	if u == nil {
		u = &userTurn{running: make(chan struct{}, 1)}
		t.users[userID] = u
	}
	u.callers++
	t.mu.Unlock()
	done := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if u.callers--; u.callers == 0 {
			delete(t.users, userID)
		}
	}
	timeout := fault.New(fault.Timeout, "capacity.turn", "the request ended while it waited for earlier requests; try again")
	select {
	case u.running <- struct{}{}:
	case <-ctx.Done():
		done()
		return nil, timeout
	}
	select {
	case t.free <- struct{}{}:
	case <-ctx.Done():
		<-u.running
		done()
		return nil, timeout
	}
	return func() { <-t.free; <-u.running; done() }, nil
}
