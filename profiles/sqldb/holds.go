package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

var _ profiles.TicketStore = (*Claims)(nil)

// HoldSnapshot implements [profiles.ClaimStore].
func (st *Claims) HoldSnapshot(ctx context.Context, holdID, snapshotID, purpose string) error {
	const op = "profiles.hold_snapshot"
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		node, number := st.db.own()
		var one int
		if err := tx.QueryRowContext(ctx, "SELECT 1 FROM snapshots WHERE snapshot_id = ?", snapshotID).Scan(&one); err != nil {
			return orMissing(err, fault.SnapshotNotFound, op)
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO snapshot_holds (hold_id, snapshot_id, node_id, number, purpose) VALUES (?, ?, ?, ?, ?)", holdID, snapshotID, node, number, purpose)
		return err
	})
}

// ReleaseSnapshot implements [profiles.ClaimStore].
func (st *Claims) ReleaseSnapshot(ctx context.Context, holdID string) error {
	return st.db.writeLocked(ctx, "profiles.release_snapshot", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM snapshot_holds WHERE hold_id = ?", holdID)
		return err
	})
}

// checkHolds returns snapshot_in_use if another node reads a snapshot that is to be removed.
func (h *handle) checkHolds(ctx context.Context, tx *sql.Tx, snapshotID, op string) error {
	node, _ := h.own()
	if node == "" {
		return nil
	}
	var purpose string
	err := tx.QueryRowContext(ctx, "SELECT purpose FROM snapshot_holds c WHERE snapshot_id = ? AND node_id <> ? AND "+leased+" LIMIT 1", snapshotID, node).Scan(&purpose)
	switch {
	case errors.Is(err, sql.ErrNoRows): // what is left is of nodes without a lease
		_, err = tx.ExecContext(ctx, "DELETE FROM snapshot_holds WHERE snapshot_id = ? AND node_id <> ?", snapshotID, node)
		return err
	case err != nil:
		return err
	}
	return fault.New(fault.SnapshotInUse, op, "the snapshot is being %s on another node; try again later", purpose)
}

// RemoveVoid implements [profiles.ClaimStore].
func (st *Claims) RemoveVoid(ctx context.Context, before time.Time) error {
	return st.db.write(ctx, "profiles.remove_void", func(tx *sql.Tx) error {
		for _, table := range []string{"session_claims", "check_claims", "snapshot_holds", "waiting_creates"} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" AS c WHERE NOT "+leased); err != nil {
				return err
			}
		}
		if err := forgetTurns(ctx, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM tickets WHERE expires_at <= ?", stamp(before))
		return err
	})
}

// AddTicket implements [profiles.TicketStore].
func (st *Claims) AddTicket(ctx context.Context, hash [32]byte, keyID string, expires, now time.Time, most int) (added bool, err error) {
	err = st.db.write(ctx, "profiles.add_ticket", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM tickets WHERE key_id = ? AND expires_at <= ?", keyID, stamp(now)); err != nil {
			return err
		}
		var unspent int
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM tickets WHERE key_id = ?", keyID).Scan(&unspent); err != nil {
			return err
		}
		if added = unspent < most; !added {
			return nil
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO tickets (hash, key_id, expires_at) VALUES (?, ?, ?)", hash[:], keyID, stamp(expires))
		return err
	})
	return added && err == nil, err
}

// SpendTicket implements [profiles.TicketStore].
func (st *Claims) SpendTicket(ctx context.Context, hash [32]byte, now time.Time) (keyID string, err error) {
	err = st.db.write(ctx, "profiles.spend_ticket", func(tx *sql.Tx) error {
		keyID = ""
		var expires int64
		err := tx.QueryRowContext(ctx, "DELETE FROM tickets WHERE hash = ? RETURNING key_id, expires_at", hash[:]).Scan(&keyID, &expires)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if expires <= stamp(now) {
			keyID = ""
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return keyID, nil
}
