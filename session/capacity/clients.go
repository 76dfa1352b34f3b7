package capacity

import (
	"sync"

	"github.com/stasisd/stasis/fault"
)

// defaultMaxClients is how many CDP clients a session may have at once.
const defaultMaxClients = 64

// Clients counts the CDP clients of each session, including those that are still
// connecting. Its methods are safe for concurrent use.
type Clients struct {
	most int

	mu     sync.Mutex
	counts map[string]int // by session ID; no entry is 0
}

// NewClients makes Clients. most is the number of clients that a session may have at
// once; 0 or less means 64.
func NewClients(most int) *Clients {
	if most <= 0 {
		most = defaultMaxClients
	}
	return &Clients{most: most, counts: map[string]int{}}
}

// Take reserves a connection for one client of a session. The caller calls release once.
// If the session has all its clients, the error is too_many_clients.
func (c *Clients) Take(sessionID string) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[sessionID] >= c.most {
		return nil, fault.New(fault.TooManyClients, "session.attach", "the session already has %d CDP clients, the maximum; close one, or raise --max-clients", c.most)
	}
	c.counts[sessionID]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.counts[sessionID]--; c.counts[sessionID] == 0 {
			delete(c.counts, sessionID)
		}
	}, nil
}
