package session

import (
	"context"
	"slices"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Why a default does not move to a checkpoint: the browser lives, and can be saved
// again.
const (
	damagedCopy = "damaged_copy" // something in it is damaged on disk
	unreadCopy  = "unread_copy"  // there was no time to look
)

// flawed is the failure that an automatic checkpoint with a flaw counts as; nil
// for one that is as it should be. What was not read is a failure where a default
// was to move to it.
func flawed(flaw string, move bool) error {
	const op = "session.autosave"
	switch {
	case flaw == damagedCopy:
		return fault.New(fault.SaveFailed, op, "something in the copy is damaged on disk; it is kept, its warnings tell what, and the earlier ones stay")
	case flaw == unreadCopy && move:
		return fault.New(fault.SaveFailed, op, "there was no time to read the copy, so the default does not move to it")
	}
	return nil
}

// soundest is the newest snapshot of a session, but for checkpoints with damage
// where it has another one. None is no_snapshot.
func (s *Service) soundest(ctx context.Context, id string) (profiles.Snapshot, error) {
	newest, err := s.Catalogue.NewestSnapshot(ctx, id)
	if err != nil || !captureReportOf(newest).Damaged {
		return newest, err
	}
	rows, _, err := s.Catalogue.Snapshots(ctx, profiles.SnapshotFilter{SessionID: id})
	if err != nil {
		return newest, err
	}
	if at := slices.IndexFunc(rows, func(row profiles.Snapshot) bool { return !captureReportOf(row).Damaged }); at >= 0 {
		return rows[at], nil
	}
	return newest, nil
}
