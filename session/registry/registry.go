// Package registry knows which sessions live and which are on their way, and which
// environments they and login checks hold.
package registry

import (
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/login/renewal"
	"github.com/stasisd/stasis/session/restore"
)

// Entry is a session that lives.
type Entry[S any] struct {
	ID, UserID string
	Source     *restore.Source // that it was restored from; nil: it began empty
	SnapshotID string          // of that
	Done       <-chan struct{} // closed when it no longer lives
	Session    S
}

// claim is a session that is on its way.
type claim struct {
	keyID  string               // whose create it is
	origin *restore.Environment // nil until it is settled what it starts from
	done   chan struct{}        // closed when it is live, or has come to nothing
}

// Registry is the register of a daemon's sessions. Its methods are safe for concurrent
// use and wait for nothing, unless they say so.
type Registry[S any] struct {
	parked func(snapshotID string) bool

	mu      sync.Mutex
	closed  bool
	live    map[string]Entry[S]
	claims  map[string]*claim // by session ID
	renewal *renewal.Renewal  // a scheduled login check that is under way
	waiting int               // creates that wait for it
	checks  map[string]int    // login checks of defaults on request that are under way, by user
}

// New makes a Registry. parked reports whether a Chrome is parked for a snapshot.
func New[S any](parked func(snapshotID string) bool) *Registry[S] {
	return &Registry[S]{parked: parked, live: map[string]Entry[S]{}, claims: map[string]*claim{}, checks: map[string]int{}}
}

// Claim holds an ID while its session is on its way, until release is called, once.
// Another key hears no more than that the ID is taken (session_exists), the same key
// request_in_progress; shutting_down where the daemon stops.
func (r *Registry[S]) Claim(keyID, id string) (release func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	other := r.claims[id]
	switch {
	case r.closed:
		return nil, shuttingDown()
	case other != nil && other.keyID != keyID:
		return nil, Taken()
	case other != nil:
		return nil, fault.New(fault.RequestInProgress, "session.create", "session_id: a create of this session is under way")
	}
	c := &claim{keyID: keyID, done: make(chan struct{})}
	r.claims[id] = c
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(c.done)
		delete(r.claims, id)
	}, nil
}

// Taken says that an ID is another session's, whoever's that is.
func Taken() error {
	return fault.New(fault.SessionExists, "session.create", "session_id: the ID is taken")
}

func shuttingDown() error {
	return fault.New(fault.ShuttingDown, "session.create", "the daemon is shutting down")
}

// Add makes a session live, and calls begin before anybody can find or end it.
// Where the daemon stops it is shutting_down, and nothing is done.
func (r *Registry[S]) Add(e Entry[S], begin func()) error {
	return r.WhileOpen(func() {
		r.live[e.ID] = e
		begin()
	})
}

// WhileOpen calls f, and the daemon does not begin to stop meanwhile. Where it stops
// already that is shutting_down. f calls nothing of the Registry.
func (r *Registry[S]) WhileOpen(f func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return shuttingDown()
	}
	f()
	return nil
}

// Remove takes out a session that has ended.
func (r *Registry[S]) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, id)
}

// Find returns a live session; zero where there is none.
func (r *Registry[S]) Find(id string) S {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[id].Session
}

// All returns the live sessions.
func (r *Registry[S]) All() []S {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]S, 0, len(r.live))
	for _, e := range r.live {
		all = append(all, e.Session)
	}
	return all
}

// Close lets no further session or check begin.
func (r *Registry[S]) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// Counts are how many sessions live and are on their way, whether a scheduled login
// check is under way, and how many creates wait for that.
type Counts struct {
	Live, Creating int
	Renewing       bool
	Waiting        int
}

// Counts counts the sessions.
func (r *Registry[S]) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Counts{Live: len(r.live), Creating: len(r.claims), Renewing: r.renewal != nil, Waiting: r.waiting}
}
