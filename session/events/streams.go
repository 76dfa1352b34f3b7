package events

import (
	"sync"

	"github.com/stasisd/stasis/fault"
)

// How many streams of events are open at once: for one session, with one key, and in the
// daemon.
const (
	maxSessionStreams = 64
	maxKeyStreams     = 1024
	maxStreams        = 2048
)

// streams counts the streams of events. Its methods are safe for concurrent use.
type streams struct {
	mu       sync.Mutex
	all      int
	sessions map[string]int // by ID
	keys     map[string]int // by ID
}

func newStreams() *streams { return &streams{sessions: map[string]int{}, keys: map[string]int{}} }

// take takes a slot for a stream until leave is called; leave must be called once. If
// there is none, the error is too_many_requests.
func (s *streams) take(sessionID, keyID string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const op = "events.streams"
	switch {
	case s.sessions[sessionID] >= maxSessionStreams:
		return nil, fault.New(fault.TooManyRequests, op, "the session has %d streams of events open, which is the limit; close one first", maxSessionStreams)
	case s.keys[keyID] >= maxKeyStreams:
		return nil, fault.New(fault.TooManyRequests, op, "the key has %d streams of events open, which is the limit; close one first", maxKeyStreams)
	case s.all >= maxStreams:
		return nil, fault.New(fault.TooManyRequests, op, "the daemon has %d streams of events open, which is the limit; close one first", maxStreams)
	}
	s.all++
	s.sessions[sessionID]++
	s.keys[keyID]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		decrement(s.sessions, sessionID)
		decrement(s.keys, keyID)
	}, nil
}

func decrement(counts map[string]int, id string) {
	if counts[id]--; counts[id] == 0 {
		delete(counts, id)
	}
}
