package session

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// maxReadings bounds how many state documents are compared or exported at once:
// one of 64 MiB takes many times that in memory.
const maxReadings = 2

// turns let a bounded number of calls run at once, one of each user, so that no
// user's many calls keep others waiting. Its methods are safe for concurrent use.
type turns struct {
	free chan struct{} // has one for each call that runs

	mu    sync.Mutex
	users map[string]*userTurn
}

// userTurn is one user's; it is there while somebody runs or waits.
type userTurn struct {
	running chan struct{} // has one while a call of the user runs
	callers int
}

func newTurns(n int) *turns {
	return &turns{free: make(chan struct{}, n), users: map[string]*userTurn{}}
}

// take waits for a user's turn until ctx ends. leave gives it back, once.
func (t *turns) take(ctx context.Context, userID string) (leave func(), err error) {
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
	given := fault.New(fault.Timeout, "session.turn", "the request was given up while it waited for its turn")
	select {
	case u.running <- struct{}{}:
	case <-ctx.Done():
		gone()
		return nil, given
	}
	select {
	case t.free <- struct{}{}:
	case <-ctx.Done():
		<-u.running
		gone()
		return nil, given
	}
	return func() { <-t.free; <-u.running; gone() }, nil
}
