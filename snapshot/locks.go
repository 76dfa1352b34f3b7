package snapshot

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// keyLocks gives out one lock per name; a name that nobody holds or waits for
// takes no memory. A save holds its archive's lock, then its location's; so
// does a delete. The order is what keeps them from waiting for each other.
type keyLocks struct {
	mu    sync.Mutex
	names map[string]*nameLock
}

type nameLock struct {
	held  chan struct{} // full while the lock is held
	users int           // holders and waiters; guarded by keyLocks.mu
}

// lock waits for the name and returns what releases it; timeout where ctx ends
// first.
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
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.lock", "another save, delete or repair of the same archive or location goes on")
	}
	return func() {
		<-n.held
		l.leave(name, n)
	}, nil
}

// leave forgets the lock when nobody else uses it.
func (l *keyLocks) leave(name string, n *nameLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.users--; n.users == 0 {
		delete(l.names, name)
	}
}
