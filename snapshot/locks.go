package snapshot

import "sync"

// keyLocks gives out one lock per name; a name that nobody holds or waits for
// takes no memory. A save holds its archive's lock, then its location's; so
// does a delete. The order is what keeps them from waiting for each other.
type keyLocks struct {
	mu    sync.Mutex
	names map[string]*nameLock
}

type nameLock struct {
	sync.Mutex
	users int // holders and waiters; guarded by keyLocks.mu
}

// lock waits for the name and returns what releases it.
func (l *keyLocks) lock(name string) (unlock func()) {
	l.mu.Lock()
	if l.names == nil {
		l.names = map[string]*nameLock{}
	}
	n := l.names[name]
	if n == nil {
		n = &nameLock{}
		l.names[name] = n
	}
	n.users++
	l.mu.Unlock()

	n.Lock()
	return func() {
		n.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if n.users--; n.users == 0 {
			delete(l.names, name)
		}
	}
}
