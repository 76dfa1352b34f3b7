package e2e

import (
	"maps"
	"slices"
	"sync"
)

// known is what those who used a session have been told of it, over all lives of
// the daemon. What was answered must be there after a kill; what was sent and not
// answered may be, once.
type known struct {
	id, user string
	asked    obj // the body of its create

	unsaved bool // nobody ever saves it, and it is not rescued: there is nothing to resume
	discard bool // it is not rescued: what was saved is there to resume from
	gone    bool // its end without a save was answered: nobody looks at it any more

	mu       sync.Mutex
	made     bool             // its create was answered
	said     map[int64]string // "TYPE content" of messages, by ID
	saying   map[string]bool  // that were sent and not answered
	noted    []string         // decisions
	noting   map[string]bool
	saved    []string         // snapshots that were asked for
	visits   int              // the newest that the browser has answered
	kept     int              // the newest visit that an answered snapshot has
	stream   []sentEvent      // all that one reader of the stream was sent
	last     string           // ID of the newest of those
	shown    map[place]string // what readers of pages were given
	runs     []shownRun
	listed   map[place]string // at the last examination
	messages []string         // at the last examination
}

// place is that of an event.
type place struct{ run, sequence int64 }

// sentEvent is an event as a stream sent it.
type sentEvent struct {
	at   place
	data string
}

// shownRun is a run as a list showed it.
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

// do changes what is known.
func (k *known) do(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// events are the places of events, in order.
func events(all map[place]string) []place {
	return slices.SortedFunc(maps.Keys(all), func(a, b place) int {
		if a.run != b.run {
			return int(a.run - b.run)
		}
		return int(a.sequence - b.sequence)
	})
}

// after reports whether an event is the next one after another.
func (p place) after(was place) bool {
	return p.run == was.run && p.sequence == was.sequence+1 || p.run > was.run && p.sequence == 1
}
