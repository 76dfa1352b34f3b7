package registry

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/login/renewal"
	"github.com/stasisd/stasis/session/restore"
)

// Holder is what holds an environment: a session or a scheduled login check.
type Holder[S any] struct {
	ID      string
	Live    *Entry[S]        // nil while the session is being created
	Done    <-chan struct{}  // closed when the session ends, or when its creation ends
	Renewal *renewal.Renewal // nil for a session
}

// Enter records that a claimed session starts from an environment, and returns nil. If
// another session of the same user has the same source or snapshot, Enter returns that
// session instead, unless company is true. A scheduled check of the environment is always
// returned.
func (r *Registry[S]) Enter(id string, from restore.Environment, company bool) *Holder[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.renewal; c != nil && from.Same(c.UserID(), *c.Environment().Source, c.SnapshotID()) {
		return &Holder[S]{Renewal: c}
	}
	if !company {
		if other := r.holder(id, from); other != nil {
			return other
		}
	}
	r.claims[id].origin = &from
	return nil
}

// holder finds another session, live or being created, that holds an environment; nil if
// there is none. The caller holds the lock.
func (r *Registry[S]) holder(id string, from restore.Environment) *Holder[S] {
	for _, e := range r.live {
		// A live session also holds its own checkpoints.
		if from.Snapshot.SessionID == e.ID || e.Source != nil && from.Same(e.UserID, *e.Source, e.SnapshotID) {
			return &Holder[S]{ID: e.ID, Live: &e, Done: e.Done}
		}
	}
	for other, c := range r.claims {
		if other != id && c.origin != nil && from.Same(c.origin.UserID, *c.origin.Source, c.origin.Snapshot.ID) {
			return &Holder[S]{ID: other, Done: c.done}
		}
	}
	return nil
}

// EnterRenewal registers a scheduled check. It returns false if something else holds the
// environment: a session that is live or being created, a parked Chrome, or another
// check. From then on [Registry.Enter] returns the check.
func (r *Registry[S]) EnterRenewal(c *renewal.Renewal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drained || r.parked(c.SnapshotID()) || r.checks[c.UserID()] != nil || r.holder("", c.Environment()) != nil {
		return false
	}
	r.renewal = c
	return true
}

// LeaveRenewal removes the scheduled check, which has ended.
func (r *Registry[S]) LeaveRenewal(*renewal.Renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewal = nil
}

// EnterCheck registers a requested check of a user's default. It first waits for another
// check of that user to end; timeout if ctx ends first. No other check of that user starts
// until leave is called.
func (r *Registry[S]) EnterCheck(ctx context.Context, userID string) (leave func(), err error) {
	for {
		r.mu.Lock()
		renewal, running := r.renewal, r.checks[userID]
		if renewal != nil && renewal.UserID() != userID {
			renewal = nil
		}
		if renewal == nil && running == nil {
			ended := make(chan struct{})
			r.checks[userID] = ended
			r.mu.Unlock()
			return func() { r.leaveCheck(userID, ended) }, nil
		}
		r.mu.Unlock()
		if renewal != nil {
			if err := renewal.Await(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-running:
		case <-ctx.Done():
			return nil, fault.New(fault.Timeout, "registry.check", "the request ended while it waited for another check of the user's login; try again")
		}
	}
}

// leaveCheck removes a requested check, and lets another one of the user start.
func (r *Registry[S]) leaveCheck(userID string, ended chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.checks, userID)
	close(ended)
}

// AwaitRenewal makes a scheduled check give way to a create and waits for its end;
// timeout if ctx ends first. A nil c means the check that is under way, if any.
func (r *Registry[S]) AwaitRenewal(ctx context.Context, c *renewal.Renewal) error {
	r.mu.Lock()
	if c == nil {
		c = r.renewal
	}
	if c == nil {
		r.mu.Unlock()
		return nil
	}
	r.waiting++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting--
	}()
	return c.GiveWay(ctx)
}

// Elsewhere is the cause of an error: another node has the session.
type Elsewhere struct{ SessionID, NodeID string }

// Error names the node.
func (e *Elsewhere) Error() string { return "session " + e.SessionID + " is on node " + e.NodeID }
