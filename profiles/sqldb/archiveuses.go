package sqldb

import (
	"context"
	"database/sql"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Claims is the store of what nodes claim of each other. It implements
// [profiles.ArchiveUseStore], [profiles.ClaimStore], [profiles.TicketStore] and
// [profiles.WaitingStore].
type Claims struct{ db *handle }

var _ profiles.ArchiveUseStore = (*Claims)(nil)

// leased is a condition: the node that wrote the row still has the lease it had then. A node
// whose lease has expired counts until another node takes it over: until then it may commit.
const leased = "EXISTS (SELECT 1 FROM nodes WHERE nodes.node_id = c.node_id AND nodes.number = c.number)"

// own returns the node's ID and the number of its lease.
func (h *handle) own() (id string, number int64) {
	if l := h.lease.Load(); l != nil {
		return l.id, l.number
	}
	return "", 0
}

// ReserveArchive implements [profiles.ArchiveUseStore].
func (st *Claims) ReserveArchive(ctx context.Context, archiveID, snapshotID string) (reserved bool, err error) {
	err = st.db.write(ctx, "profiles.reserve_archive", func(tx *sql.Tx) error {
		var removals int
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM archive_uses WHERE archive_id = ? AND snapshot_id = ''", archiveID).Scan(&removals)
		if reserved = err == nil && removals == 0; !reserved {
			return err
		}
		return st.addUse(ctx, tx, archiveID, snapshotID)
	})
	return reserved && err == nil, err
}

func (st *Claims) addUse(ctx context.Context, tx *sql.Tx, archiveID, snapshotID string) error {
	node, number := st.db.own()
	_, err := tx.ExecContext(ctx, "INSERT INTO archive_uses (archive_id, snapshot_id, node_id, number, created_at) VALUES (?, ?, ?, ?, ?) "+
		"ON CONFLICT (archive_id, snapshot_id) DO UPDATE SET node_id = excluded.node_id, number = excluded.number, created_at = excluded.created_at",
		archiveID, snapshotID, node, number, stamp(st.now()))
	return err
}

// now is the time of a row, which only cleaning up depends on.
func (st *Claims) now() time.Time { return st.db.now() }

// ReleaseArchive implements [profiles.ArchiveUseStore].
func (st *Claims) ReleaseArchive(ctx context.Context, archiveID, snapshotID string) error {
	return st.db.write(ctx, "profiles.release_archive", func(tx *sql.Tx) error {
		return releaseArchive(ctx, tx, archiveID, snapshotID)
	})
}

func releaseArchive(ctx context.Context, tx *sql.Tx, archiveID, snapshotID string) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM archive_uses WHERE archive_id = ? AND snapshot_id = ? AND snapshot_id <> ''", archiveID, snapshotID)
	return err
}

// useReservation removes the reservation of a snapshot's archive, which the record of the snapshot
// protects from here on. If it was made under another lease, the error is node_lost: another node
// may have removed the archive.
func (h *handle) useReservation(ctx context.Context, tx *sql.Tx, s profiles.Snapshot, op string) error {
	node, number := h.own()
	if node == "" {
		return nil
	}
	r, err := tx.ExecContext(ctx, "DELETE FROM archive_uses WHERE archive_id = ? AND snapshot_id = ? AND node_id = ? AND number = ?", s.ArchiveID, s.ID, node, number)
	return requireRow(r, err, fault.NodeLost, op)
}

// BeginRemoval implements [profiles.ArchiveUseStore].
func (st *Claims) BeginRemoval(ctx context.Context, archiveID, snapshotID string) (begun bool, err error) {
	err = st.db.write(ctx, "profiles.begin_removal", func(tx *sql.Tx) error {
		if err := releaseArchive(ctx, tx, archiveID, snapshotID); err != nil {
			return err
		}
		var uses int
		err := tx.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM snapshots WHERE archive_id = ?) + "+
			"(SELECT COUNT(*) FROM archive_uses c WHERE archive_id = ? AND (snapshot_id = '' OR "+leased+"))", archiveID, archiveID).Scan(&uses)
		if begun = err == nil && uses == 0; !begun {
			return err
		}
		return st.addUse(ctx, tx, archiveID, "")
	})
	return begun && err == nil, err
}

// EndRemoval implements [profiles.ArchiveUseStore].
func (st *Claims) EndRemoval(ctx context.Context, archiveID string) error {
	return st.db.write(ctx, "profiles.end_removal", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM archive_uses WHERE archive_id = ? AND snapshot_id = ''", archiveID)
		return err
	})
}

// ArchiveUses implements [profiles.ArchiveUseStore].
func (st *Claims) ArchiveUses(ctx context.Context, before time.Time) ([]profiles.ArchiveUse, error) {
	all, err := collect(ctx, st.db.reader, func(r row) (u profiles.ArchiveUse, err error) {
		return u, r.Scan(&u.ArchiveID, &u.SnapshotID, moment{&u.CreatedAt}, &u.Lost)
	}, "SELECT archive_id, snapshot_id, created_at, NOT "+leased+" FROM archive_uses c WHERE created_at < ? AND (snapshot_id = '' OR NOT "+leased+
		") ORDER BY created_at, archive_id, snapshot_id", stamp(before))
	return all, failure("profiles.archive_uses", err)
}
