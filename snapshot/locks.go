package snapshot

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// keyLocks has one lock per name. An unused name takes no memory. A save or a delete
// takes its archive's lock before its location's, so that they cannot deadlock.
type keyLocks struct {
	mu    sync.Mutex
	names map[string]*nameLock
}

type nameLock struct {
	held  chan struct{} // full while the lock is held
	users int           // holders and waiters; guarded by keyLocks.mu
}

// lock waits for the name and returns a function that releases it. The error is timeout
// if ctx ends first.
func (l *keyLocks) lock(ctx context.Context, name string) (unlock func(), err error) {
	l.mu.Lock()
	if l.names == nil {
		l.names = map[string]*nameLock{}
	}
	n := l.names[name]
	if n == nil {
		n = &nameLock{held: make(chan struct{}, 1)}
		l.names[name] = n
	}
	n.users++
	l.mu.Unlock()

	select {
	case n.held <- struct{}{}:
	case <-ctx.Done():
		l.leave(name, n)
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.lock", "another save, delete or repair of the same archive or location is still running; try again later")
	}
	return func() {
		<-n.held
		l.leave(name, n)
	}, nil
}

// leave forgets the lock if it has no other user.
func (l *keyLocks) leave(name string, n *nameLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.users--; n.users == 0 {
		delete(l.names, name)
	}
}
