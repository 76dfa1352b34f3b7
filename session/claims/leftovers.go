package claims

import (
	"context"
	"time"
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

// RemoveLeftovers removes what nodes have left when they lost their leases: claims, and archives
// in the store, of saves that were never committed and of removals that did not end. It also
// removes expired tickets. Every node may call it at any time.
func (c *Claims) RemoveLeftovers(ctx context.Context, vault Vault, now time.Time) {
	if err := c.store.RemoveVoid(ctx, now.Add(-lostAfter)); err != nil {
		c.log.Warn("what nodes have claimed that lost their leases could not be removed; the next sweep tries again", "error", err)
	}
	uses, err := c.store.ArchiveUses(ctx, now.Add(-lostAfter))
	if err != nil {
		c.log.Warn("archives that nodes have left could not be listed; the next sweep tries again", "error", err)
	}
	for _, u := range uses {
		if u.SnapshotID == "" && u.CreatedAt.After(now.Add(-removedAfter)) {
			continue
		}
		if u.SnapshotID == "" { // nothing of it can take effect any more: it is begun again
			if err := c.store.EndRemoval(ctx, u.ArchiveID); err != nil {
				c.log.Warn("the record of a removal could not be dropped; the next sweep tries again", "archive", u.ArchiveID, "error", err)
				continue
			}
		}
		if err := vault.RemoveUnused(ctx, u.ArchiveID, u.SnapshotID); err != nil {
			c.log.Warn("an archive that a node has left could not be removed; the next sweep tries again", "archive", u.ArchiveID, "error", err)
		}
	}
}
