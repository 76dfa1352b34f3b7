package quota

import "sync"

// Counter counts what holders have at once. The zero value is ready. Its methods are safe
// for concurrent use.
type Counter struct {
	mu   sync.Mutex
	held map[Share]int64
}

// Take counts one more for each limit until release is called, which must be called once.
// If a limit is reached, nothing is counted and the error is quota_exceeded.
func (c *Counter) Take(op string, limits []Limit) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range limits {
		if n := c.held[l.Share]; l.Reached(n) {
			return nil, l.Error(op, n)
		}
	}
	c.add(limits, 1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.add(limits, -1)
	}, nil
}

// add changes the counts. The caller holds the lock.
func (c *Counter) add(limits []Limit, n int64) {
	if c.held == nil {
		c.held = map[Share]int64{}
	}
	for _, l := range limits {
		if c.held[l.Share] += n; c.held[l.Share] == 0 {
			delete(c.held, l.Share)
		}
	}
}

// Held returns how large a share is.
func (c *Counter) Held(s Share) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[s]
}
