package save

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/login"
)

// MoveDefault moves the default of a snapshot's user to that snapshot. The outcome says
// whether it moved and, if not, why. A default that has moved to another version
// meanwhile is not an error. checked is a login check that was made before; nil: none.
func (s *Saver) MoveDefault(ctx context.Context, snap profiles.Snapshot, m profiles.Move, checked *login.Outcome) (*DefaultOutcome, error) {
	outcome := &DefaultOutcome{Version: m.From, LoginCheck: checked}
	now, err := s.cfg.Records.Default(ctx, snap.UserID)
	switch {
	case err == nil && now.SnapshotID == snap.ID:
		outcome.Version, outcome.Reason = now.Version, "this snapshot is the default already"
		return outcome, nil
	case err != nil && !fault.Is(err, fault.DefaultNotFound):
		return nil, err
	}
	from := &m.From
	switch {
	case m.Overwrite:
		from = nil
	case m.MayReplace(now):
		from = &now.Version
	}
	defer s.cfg.Ready.DefaultChanged()
	d, err := s.cfg.Records.SetDefault(ctx, snap.UserID, snap.ID, from, s.cfg.Now().UTC())
	switch {
	case fault.Is(err, fault.VersionConflict):
		outcome.Version, outcome.Reason, outcome.Conflict = now.Version, fault.MessageOf(err), true
	case err != nil:
		return nil, err
	default:
		outcome.Moved, outcome.Version = true, d.Version
	}
	return outcome, nil
}
