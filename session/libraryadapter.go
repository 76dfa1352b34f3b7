package session

import (
	"context"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Snapshots returns the stored snapshots that sessions are saved to and restored from.
func (s *Service) Snapshots() *library.Snapshots { return s.snapshots }

// Pruner returns the pruner, which removes old snapshots; see [Config.Retention].
func (s *Service) Pruner() *library.Pruner { return s.pruner }

// ForLibrary returns what package library needs of the sessions.
func (s *Service) ForLibrary() library.Sessions { return libraryAdapter{s} }

// libraryAdapter is what package library needs of a Service.
type libraryAdapter struct{ svc *Service }

// Record returns a session's record if the caller has permission p for it.
func (f libraryAdapter) Record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error) {
	return f.svc.inspector.Record(ctx, c, id, p)
}

// DefaultChanged updates the standbys.
func (f libraryAdapter) DefaultChanged() { f.svc.capacity.DefaultChanged() }

// ReadStorage starts a Chrome on a snapshot and reads what the snapshot's document lacks.
// The Chrome takes a slot like a session's, and counts for the same quotas.
func (f libraryAdapter) ReadStorage(ctx context.Context, c access.Caller, userID string, saved snapshot.Snapshot) (state.Document, []state.Component, error) {
	claim, err := f.svc.claim(ctx, c, userID, false, nil)
	if err != nil {
		return state.Document{}, nil, err
	}
	if err := f.svc.capacity.AcquireFor(ctx, claim, false); err != nil {
		return state.Document{}, nil, err
	}
	defer f.svc.capacity.ReleaseFor(claim)
	limits, err := f.svc.users.Egress(ctx, userID)
	if err != nil {
		return state.Document{}, nil, err
	}
	return f.svc.restorer.ReadStorage(ctx, saved, limits, f.svc.archives.Document)
}

// Retention returns a user's policy; nil if the user has none.
func (f libraryAdapter) Retention(ctx context.Context, userID string) (*library.Retention, error) {
	set, err := f.svc.users.For(ctx, userID)
	return set.Retention, err
}
