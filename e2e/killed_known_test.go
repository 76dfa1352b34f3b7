package e2e

import (
	"maps"
	"slices"
	"sync"
)

// known is what the clients of a session have learned about it, over all starts of the
// daemon. What was answered must be there after a kill. What was sent without an answer
// may be there, once.
type known struct {
	id, user string
	asked    obj // the body of its create

	unsaved bool // no client saves it, and it is not rescued: it cannot be resumed
	discard bool // it is not rescued, but its saves can be resumed
	gone    bool // its end without a save was answered; it is not checked any more

	mu       sync.Mutex
	made     bool             // its create was answered
	said     map[int64]string // "TYPE content" of messages, by ID
	saying   map[string]bool  // messages that were sent without an answer
	noted    []string         // decisions
	noting   map[string]bool
	saved    []string         // IDs of answered snapshots
	visits   int              // number of the newest visit that the browser has completed
	kept     int              // number of the newest visit that an answered snapshot has
	stream   []sentEvent      // all events that one reader of the stream received
	last     string           // ID of the newest of those
	shown    map[place]string // the events that readers of pages received
	runs     []shownRun
	listed   map[place]string // the events at the last examination
	messages []string         // the messages at the last examination
}

// place is the run and sequence number of an event.
type place struct{ run, sequence int64 }

// sentEvent is an event from a stream.
type sentEvent struct {
	at   place
	data string
}

// shownRun is a run in a list of runs.
type shownRun struct {
	ID     string  `json:"run_id"`
	Number int64   `json:"number"`
	Status string  `json:"status"`
	Cause  *string `json:"cause"`
}

func newKnown(id, user string, asked obj) *known {
	whole := obj{"session_id": id, "user_id": user, "resume": true, "if_missing": "fresh"}
	maps.Copy(whole, asked)
	return &known{id: id, user: user, asked: whole, discard: asked["on_timeout"] == "discard", said: map[int64]string{}, saying: map[string]bool{},
		noting: map[string]bool{}, shown: map[place]string{}, listed: map[place]string{}}
}

// do changes what is known, under the lock.
func (k *known) do(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// events returns the places of events, in order.
func events(all map[place]string) []place {
	return slices.SortedFunc(maps.Keys(all), func(a, b place) int {
		if a.run != b.run {
			return int(a.run - b.run)
		}
		return int(a.sequence - b.sequence)
	})
}

// after reports whether one event directly follows another.
func (p place) after(was place) bool {
	return p.run == was.run && p.sequence == was.sequence+1 || p.run > was.run && p.sequence == 1
}
