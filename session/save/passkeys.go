package save

import (
	"context"

	"github.com/stasisd/stasis/state"
)

// passkeysAfterCrash returns the passkeys of a Chrome that has ended; Chrome keeps none on
// disk. They are those that the daemon knew. If the daemon died too, they are those of
// the snapshot that the session started from.
func (s *Saver) passkeysAfterCrash(ctx context.Context, j Job) state.Passkeys {
	if j.Chrome != nil {
		held, _ := j.Chrome.Passkeys()
		return held
	}
	asked := j.Options.Passkeys != nil && *j.Options.Passkeys
	if j.Session.BaseSnapshotID == "" {
		return state.Passkeys{Enabled: asked}
	}
	base, err := s.passkeysOf(ctx, j.Session.BaseSnapshotID)
	if err != nil {
		s.cfg.Log.Warn("the passkeys of a rescued session could not be read from the snapshot that it started from; the rescue has none",
			"session", j.Session.ID, "snapshot", j.Session.BaseSnapshotID, "error", err)
	}
	base.Enabled = base.Enabled || asked
	filtered, _ := j.RestoredOrigins.Document(state.Document{Passkeys: base})
	return filtered.Passkeys
}

// passkeysOf reads the passkeys of a snapshot.
func (s *Saver) passkeysOf(ctx context.Context, id string) (state.Passkeys, error) {
	row, err := s.cfg.Records.Snapshot(ctx, id)
	if err != nil {
		return state.Passkeys{}, err
	}
	doc, err := s.cfg.Snapshots.Document(ctx, row, "read")
	return doc.Passkeys, err
}
