// Package registry keeps which sessions live, which are being created, and which
// environments they and login checks hold. It decides which of them comes first. The
// caller decides what a create does about another holder. Everything is kept in memory.
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
	Source     *restore.Source // what it was restored from; nil if it began empty
	SnapshotID string          // of Source
	Done       <-chan struct{} // closed when the session has ended
	Session    S
}

// claim is a session that is being created.
type claim struct {
	keyID  string               // the key that creates it
	origin *restore.Environment // the environment it starts from; nil until known
	done   chan struct{}        // closed when it is live, or its create has failed
}

// Registry holds a daemon's sessions, of type S. Its methods are safe for concurrent use.
// They do not wait unless their comment says so.
type Registry[S any] struct {
	parked func(snapshotID string) bool

	mu      sync.Mutex
	drained bool // nothing begins any more
	closed  bool // and what has begun is not added
	live    map[string]Entry[S]
	claims  map[string]*claim        // by session ID
	renewal *renewal.Renewal         // the scheduled login check that is under way
	waiting int                      // creates that wait for it
	checks  map[string]chan struct{} // closed when the requested login check of a user's default ends, by user
}

// New makes a Registry. parked reports whether a Chrome is parked for a snapshot.
func New[S any](parked func(snapshotID string) bool) *Registry[S] {
	return &Registry[S]{parked: parked, live: map[string]Entry[S]{}, claims: map[string]*claim{}, checks: map[string]chan struct{}{}}
}

// Claim reserves an ID while its session is being created. The caller calls release once.
// Claiming a reserved ID fails: session_exists for another key, which learns nothing
// else, and request_in_progress for the same key. When the daemon stops, the error is
// shutting_down.
func (r *Registry[S]) Claim(keyID, id string) (release func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	other := r.claims[id]
	switch {
	case r.drained:
		return nil, shuttingDown("session.create")
	case other != nil && other.keyID != keyID:
		return nil, IDTakenError()
	case other != nil:
		return nil, fault.New(fault.RequestInProgress, "session.create", "session_id: another request is creating this session; try again")
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

// IDTakenError returns the error for an ID of another session, whatever key that session
// belongs to.
func IDTakenError() error {
	return fault.New(fault.SessionExists, "session.create", "session_id: another session has this ID; choose another ID")
}

func shuttingDown(op string) error {
	return fault.New(fault.ShuttingDown, op, "the daemon is shutting down")
}

// Add makes a session live. It calls begin before other goroutines can find or end the
// session. When the daemon stops, Add returns shutting_down and does not call begin.
// begin must not call the Registry.
func (r *Registry[S]) Add(e Entry[S], begin func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return shuttingDown("session.create")
	}
	r.live[e.ID] = e
	begin()
	return nil
}

// WhileOpen calls f; Close and Drain wait until f returns. When the daemon stops, WhileOpen
// returns shutting_down for operation op. f must not call the Registry.
func (r *Registry[S]) WhileOpen(op string, f func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drained {
		return shuttingDown(op)
	}
	f()
	return nil
}

// Remove removes a session that has ended.
func (r *Registry[S]) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, id)
}

// Find returns the live session with an ID, or the zero value.
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

// Close prevents further sessions and login checks from starting.
func (r *Registry[S]) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drained, r.closed = true, true
}

// Drain prevents further sessions and login checks from beginning. Those that have begun can be
// added.
func (r *Registry[S]) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drained = true
}

// Counts holds the number of sessions that live and are being created. Renewing reports
// whether a scheduled login check is under way; Waiting is how many creates wait for it.
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
