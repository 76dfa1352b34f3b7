package session

import (
	"sync"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
)

// Conn is one CDP client's connection, message by message.
type Conn = mux.Conn

// Eager is a Conn that can also send without waiting; see mux.Eager.
type Eager = mux.Eager

// Metered is a Conn that counts the memory of what it reads; see mux.Metered.
type Metered = mux.Metered

// defaultMaxClients is how many CDP clients a session may have at once.
const defaultMaxClients = 64

// attached counts the CDP clients of each session, those that are on their way
// included.
type attached struct {
	most int

	mu     sync.Mutex
	counts map[string]int
}

func newAttached(most int) *attached {
	if most <= 0 {
		most = defaultMaxClients
	}
	return &attached{most: most, counts: map[string]int{}}
}

// Attach takes a place for one CDP client of a session, before it is upgraded and
// served by [Service.Connect]. release gives it back and is called once. Where
// every place is taken it is too_many_clients.
func (s *Service) Attach(id string) (release func(), err error) {
	a := s.attached
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts[id] >= a.most {
		return nil, fault.New(fault.TooManyClients, "session.attach", "the session has %d CDP clients already, as many as it may (--max-clients)", a.most)
	}
	a.counts[id]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.counts[id]--; a.counts[id] == 0 {
			delete(a.counts, id)
		}
	}, nil
}
