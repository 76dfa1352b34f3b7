package session

import (
	"cmp"
	"context"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
)

// NodeStatus returns what other nodes know of this one.
func (l Lookup) NodeStatus() placement.Status {
	counts, kept := l.s.Counts(), l.s.capacity.Kept()
	return placement.Status{Free: l.s.capacity.Free(), Waiting: counts.WaitForSlot, Live: counts.Live, Rescuing: counts.Rescuing,
		Spares: kept.Spares, Parked: kept.Parked, Standbys: kept.Standbys}
}

// Lives reports whether a session lives in this daemon, or its data is being saved here.
func (l Lookup) Lives(id string) bool { return l.Rights(id) != nil || l.Rescuing(id) }

// Moving reports whether a session of this daemon is being moved to another node.
func (l Lookup) Moving(id string) bool {
	session := l.s.sessions.Find(id)
	return session != nil && session.moving.Load()
}

// Wants returns what a create needs of its node. A resume needs what its session has saved.
func (l Lookup) Wants(ctx context.Context, r request.Create) (placement.Wanted, error) {
	q := r.SourceRequest()
	from := placement.Source{Session: q.FromSession, Environment: q.FromEnvironment, DefaultOf: q.FromDefaultOf, SnapshotID: q.SnapshotID,
		Shares: r.OnLiveOrDefault() != request.OnLiveFork}
	if from.Session == "" && from.Environment == "" && from.DefaultOf == "" && (r.Resume || q.SnapshotID != "") {
		from.Session = r.SessionID
	}
	if _, kept := l.s.undo.Until(r.SessionID); kept && r.Resume {
		return placement.Wanted{Holder: l.s.deps.Node.ID()}, nil // only this node has what is resumed
	}
	return placement.Want(ctx, l.s.deps.Catalogue, r.Engine, from)
}

// Waiter returns a create as it waits for a place. wanted is what it needs. The caller may act for its
// user.
func (l Lookup) Waiter(ctx context.Context, c access.Caller, r request.Create, wanted placement.Wanted) (placement.Waiter, error) {
	user := cmp.Or(wanted.UserID, r.UserID, c.UserID)
	claim, err := l.s.claim(ctx, c, user, false, nil)
	return placement.Waiter{Wanted: wanted, UserID: user, KeyID: c.KeyID, Limits: claim.Limits}, err
}
