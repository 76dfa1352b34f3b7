package session

import "sync"

// viewers counts the viewers of one session. Its methods are safe for concurrent use.
type viewers struct {
	mu      sync.Mutex
	changed map[chan struct{}]struct{} // one channel for each viewer
}

// join adds a viewer until leave is called. changed receives a value after the number of
// viewers has changed.
func (v *viewers) join() (changed <-chan struct{}, leave func()) {
	mine := make(chan struct{}, 1)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.changed == nil {
		v.changed = map[chan struct{}]struct{}{}
	}
	v.changed[mine] = struct{}{}
	v.notify()
	return mine, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.changed, mine)
		v.notify()
	}
}

// count returns the number of viewers.
func (v *viewers) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.changed)
}

// notify sends a value to every viewer's channel. The caller holds the lock.
func (v *viewers) notify() {
	for c := range v.changed {
		select {
		case c <- struct{}{}:
		default: // there is a value already
		}
	}
}
