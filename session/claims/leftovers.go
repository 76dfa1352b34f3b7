package claims

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/profiles"
)

const (
	// lostAfter is the age at which the archive of a lost reservation is removed. A node that
	// was stopped during an upload may still store it until it finds that its lease is lost.
	lostAfter = 15 * time.Minute
	// removedAfter is the age at which the record of a removal is dropped that did not end.
	removedAfter = 24 * time.Hour
)

// Vault removes archives; see [snapshot.Vault].
type Vault interface {
	RemoveUnused(ctx context.Context, archiveID, snapshotID string) error
}

// RemoveLeftovers removes the archives that nodes have left in the store when they lost their
// leases: those of saves that were never committed, and those that were being removed. Every
// node may call it at any time.
func RemoveLeftovers(ctx context.Context, store profiles.ArchiveUseStore, vault Vault, now time.Time, log *slog.Logger) {
	uses, err := store.ArchiveUses(ctx, now.Add(-lostAfter))
	if err != nil {
		log.Warn("archives that nodes have left could not be listed; the next sweep tries again", "error", err)
	}
	for _, u := range uses {
		if u.SnapshotID == "" && u.CreatedAt.After(now.Add(-removedAfter)) {
			continue
		}
		if err := vault.RemoveUnused(ctx, u.ArchiveID, u.SnapshotID); err != nil {
			log.Warn("an archive that a node has left could not be removed; the next sweep tries again", "archive", u.ArchiveID, "error", err)
		}
	}
}
