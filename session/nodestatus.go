package session

import (
	"context"

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

// Wants returns what a create needs of its node. A resume needs what its session has saved.
func (l Lookup) Wants(ctx context.Context, r request.Create) (placement.Wanted, error) {
	q := r.SourceRequest()
	from := placement.Source{Session: q.FromSession, Environment: q.FromEnvironment, DefaultOf: q.FromDefaultOf, SnapshotID: q.SnapshotID,
		Shares: r.OnLiveOrDefault() != request.OnLiveFork}
	if from.Session == "" && from.Environment == "" && from.DefaultOf == "" && (r.Resume || q.SnapshotID != "") {
		from.Session = r.SessionID
	}
	return placement.Want(ctx, l.s.deps.Catalogue, r.Engine, from)
}
