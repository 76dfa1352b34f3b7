package capacity

import (
	"sync"

	"github.com/stasisd/stasis/fault"
)

const (
	// defaultMaxClients is how many CDP clients a session may have at once.
	defaultMaxClients = 64
	// maxViewers is how many viewers of its live view a session may have at once.
	maxViewers = 16
)

// Clients counts the CDP clients of each session, or its viewers, including those that are
// still connecting. Its methods are safe for concurrent use.
type Clients struct {
	most int
	full error // the error when a session has that many

	mu     sync.Mutex
	counts map[string]int // by session ID; no entry is 0
}

// NewClients makes Clients for CDP clients. most is the number that a session may have at
// once; 0 or less means 64. The error of a full session is too_many_clients.
func NewClients(most int) *Clients {
	if most <= 0 {
		most = defaultMaxClients
	}
	return &Clients{most: most, counts: map[string]int{}, full: fault.New(fault.TooManyClients, "session.attach",
		"the session already has %d CDP clients, the maximum; close one, or raise --max-clients", most)}
}

// NewViewers makes Clients for viewers of the live view. They have their own limit, so that
// a key that may only view takes no connection from clients that drive. The error of a full
// session is too_many_viewers.
func NewViewers() *Clients {
	return &Clients{most: maxViewers, counts: map[string]int{}, full: fault.New(fault.TooManyViewers, "session.attach_viewer",
		"the session already has %d viewers of its live view, the maximum; close one", maxViewers)}
}

// Take reserves a connection for one client of a session. The caller calls release once.
// It fails if the session has all its clients.
func (c *Clients) Take(sessionID string) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[sessionID] >= c.most {
		return nil, c.full
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

// Count returns how many clients a session has.
func (c *Clients) Count(sessionID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[sessionID]
}
