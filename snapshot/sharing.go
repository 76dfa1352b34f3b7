package snapshot

import (
	"context"
	"sync"
)

// sharing holds, for each archive, the snapshots of this process that the catalogue may
// not have yet. The delete of another snapshot must not remove their archive.
// MarkCommitted and Delete of a [Vault] remove snapshots from it.
type sharing struct {
	mu        sync.Mutex
	snapshots map[string]map[string]bool // archive ID → snapshot IDs
}

// needs reports whether another snapshot than id needs the archive. The caller holds the
// archive's lock. So a save of an equal archive is in the catalogue, or uncommitted, or has
// not begun to use it.
func (s *sharing) needs(ctx context.Context, archiveID, id string, inUse InUse) bool {
	if s.unshare(archiveID, id) || inUse == nil {
		return true
	}
	used, err := inUse(ctx, archiveID)
	return used || err != nil
}

func (s *sharing) share(archiveID, snapshotID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshots[archiveID] == nil {
		s.snapshots[archiveID] = map[string]bool{}
	}
	s.snapshots[archiveID][snapshotID] = true
}

// unshare removes the snapshot and reports whether others still share the archive.
func (s *sharing) unshare(archiveID, snapshotID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.snapshots[archiveID], snapshotID)
	if len(s.snapshots[archiveID]) == 0 {
		delete(s.snapshots, archiveID)
		return false
	}
	return true
}
