package capacity

import (
	"sync"

	"github.com/stasisd/stasis/fault"
)

// defaultMaxClients is how many CDP clients a session may have at once.
const defaultMaxClients = 64

// Clients counts the CDP clients of each session, those that are on their way
// included. Its methods are safe for concurrent use.
type Clients struct {
	most int

	mu     sync.Mutex
	counts map[string]int // by session; none is 0
}

// NewClients makes a count of clients. most is how many a session may have at once; 0
// or less: 64.
func NewClients(most int) *Clients {
	if most <= 0 {
		most = defaultMaxClients
	}
	return &Clients{most: most, counts: map[string]int{}}
}

// Take takes a place for one client of a session. release gives it back and is called
// once. Where every place is taken the error is too_many_clients.
func (c *Clients) Take(sessionID string) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[sessionID] >= c.most {
		return nil, fault.New(fault.TooManyClients, "session.attach", "the session has %d CDP clients already, as many as it may (--max-clients)", c.most)
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
