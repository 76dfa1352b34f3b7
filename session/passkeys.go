package session

import (
	"context"

	"github.com/stasisd/stasis/state"
)

// leftPasskeys are the passkeys of a Chrome that is no more, which has none on
// disk: as the daemon knew them or, where that has died too, as they were in
// the snapshot that the session started from.
func (s *Service) leftPasskeys(ctx context.Context, j job) state.Passkeys {
	if j.chrome != nil {
		held, _ := j.chrome.Passkeys()
		return held
	}
	asked := j.again.Passkeys != nil && *j.again.Passkeys
	if j.rec.BaseSnapshotID == "" {
		return state.Passkeys{Enabled: asked}
	}
	base, err := s.passkeysOf(ctx, j.rec.BaseSnapshotID)
	if err != nil {
		s.Log.Warn("the passkeys of a rescued session could not be read from the snapshot that it started from",
			"session", j.rec.ID, "snapshot", j.rec.BaseSnapshotID, "error", err)
	}
	base.Enabled = base.Enabled || asked
	left, _ := j.given.Document(state.Document{Passkeys: base})
	return left.Passkeys
}

// passkeysOf reads the passkeys of a snapshot.
func (s *Service) passkeysOf(ctx context.Context, id string) (state.Passkeys, error) {
	row, err := s.Catalogue.Snapshot(ctx, id)
	if err != nil {
		return state.Passkeys{}, err
	}
	doc, err := s.snapshots.Document(ctx, row, "read")
	return doc.Passkeys, err
}
