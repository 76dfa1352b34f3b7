// Package registry keeps which sessions live, which are being created, and which
// environments they and login checks hold. It decides who comes first; what a create does
// about another holder is up to the caller. It keeps all of it in memory.
package registry

import (
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/login/renewal"
	"github.com/stasisd/stasis/session/restore"
)

// Entry is a live session.
type Entry[S any] struct {
	ID, UserID string
	Source     *restore.Source // what it was restored from; nil: it began empty
	SnapshotID string          // of Source
	Done       <-chan struct{} // closed when it no longer lives
	Session    S
}

// claim is a session that is being created.
type claim struct {
	keyID  string               // whose create it is
	origin *restore.Environment // what it starts from; nil until that is known
	done   chan struct{}        // closed when it is live, or its create has failed
}

// Registry is that of a daemon's sessions, of type S. Its methods are safe for concurrent
// use. They do not wait unless their comment says so.
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

// Claim reserves an ID while its session is being created, until release is called, once.
// A reserved ID is session_exists for another key, which learns no more, and
// request_in_progress for the same key. When the daemon stops it is shutting_down.
func (r *Registry[S]) Claim(keyID, id string) (release func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	other := r.claims[id]
	switch {
	case r.closed:
		return nil, shuttingDown("session.create")
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

// Taken is the error of an ID that another session has, whoever owns that.
func Taken() error {
	return fault.New(fault.SessionExists, "session.create", "session_id: the ID is taken")
}

func shuttingDown(op string) error {
	return fault.New(fault.ShuttingDown, op, "the daemon is shutting down")
}

// Add makes a session live, and calls begin before others can find or end it. When the
// daemon stops it is shutting_down, and begin is not called. begin must not call the
// Registry.
func (r *Registry[S]) Add(e Entry[S], begin func()) error {
	return r.WhileOpen("session.create", func() {
		r.live[e.ID] = e
		begin()
	})
}

// WhileOpen calls f, and Close waits until it returns. When the daemon stops already it
// is shutting_down, of the operation op. f must not call the Registry.
func (r *Registry[S]) WhileOpen(op string, f func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return shuttingDown(op)
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

// Find returns the live session of an ID; the zero value if there is none.
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

// Close lets no further session or login check begin.
func (r *Registry[S]) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// Counts are how many sessions live and are being created, whether a scheduled login
// check is under way, and how many creates wait for it.
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
