package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Audit is the store of the audit log. It implements [profiles.AuditStore].
type Audit struct{ db *handle }

var _ profiles.AuditStore = (*Audit)(nil)

const auditColumns = "number, at, actor, key_id, key_user, address, call, user_id, session_id, snapshot_id, object, detail, outcome, code, count, previous, hash"

func scanAudit(r row) (profiles.AuditEntry, error) {
	var e profiles.AuditEntry
	var keyUser, user, previous, hash []byte
	err := r.Scan(&e.Number, moment{&e.At}, &e.By, &e.KeyID, &keyUser, &e.Address, &e.Call, &user, &e.SessionID, &e.SnapshotID,
		&e.Object, &e.Detail, &e.Outcome, &e.Code, &e.Count, &previous, &hash)
	e.KeyUser, e.UserID = string(keyUser), string(user)
	copy(e.Previous[:], previous)
	copy(e.Hash[:], hash)
	return e, err
}

// AuditHead implements [profiles.AuditStore].
func (st *Audit) AuditHead(ctx context.Context) (profiles.AuditEntry, error) {
	return auditEntry(ctx, st.db.reader, "profiles.audit_head", "ORDER BY number DESC LIMIT 1")
}

// OldAudit implements [profiles.AuditStore]. If the clock was set back, a later entry may
// have an earlier time. It is kept until those before it are old.
func (st *Audit) OldAudit(ctx context.Context, before time.Time) (profiles.AuditEntry, error) {
	return auditEntry(ctx, st.db.reader, "profiles.old_audit", "WHERE at < ? AND number < COALESCE((SELECT MIN(number) FROM audit WHERE at >= ?), number + 1) ORDER BY number DESC LIMIT 1",
		stamp(before), stamp(before))
}

// auditEntry returns the entry that a condition selects; one with number 0 if there is none.
func auditEntry(ctx context.Context, q querier, op, condition string, args ...any) (profiles.AuditEntry, error) {
	e, err := scanAudit(q.QueryRowContext(ctx, "SELECT "+auditColumns+" FROM audit "+condition, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return profiles.AuditEntry{}, nil
	}
	return e, failure(op, err)
}

// AddAudit implements [profiles.AuditStore].
func (st *Audit) AddAudit(ctx context.Context, entries []profiles.AuditEntry, drop int64) error {
	const op = "profiles.add_audit"
	return st.db.writeLocked(ctx, op, func(tx *sql.Tx) error {
		if st.db.remote { // one writer at a time; the key of the table would make the others try again
			if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('stasis audit ' || current_schema(), 0))"); err != nil {
				return err
			}
		}
		last, err := auditEntry(ctx, tx, op, "ORDER BY number DESC LIMIT 1")
		if err != nil {
			return err
		}
		if err := st.checkDrop(ctx, tx, drop); err != nil {
			return err
		}
		for i, e := range entries {
			if st.db.nodeID() != "" { // other nodes write the same chain
				e.Follow(last)
				entries[i] = e
			}
			if e.Number != last.Number+1 || e.Previous != last.Hash {
				return fault.New(fault.StoreFailed, op, "entry %d of the audit log does not follow entry %d, which is the last one", e.Number, last.Number)
			}
			last = e
		}
		err = insertRows(ctx, tx, "INSERT INTO audit ("+auditColumns+")", entries, func(e *profiles.AuditEntry) []any {
			return []any{e.Number, stamp(e.At), e.By, e.KeyID, []byte(e.KeyUser), e.Address, e.Call, []byte(e.UserID), e.SessionID, e.SnapshotID,
				e.Object, e.Detail, e.Outcome, e.Code, e.Count, e.Previous[:], e.Hash[:]}
		})
		if err != nil || drop == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM audit WHERE number <= ?", drop)
		return err
	})
}

// checkDrop returns an error if another node has dropped more entries: the chain begins after
// those that the newest entry about it names.
func (st *Audit) checkDrop(ctx context.Context, tx *sql.Tx, drop int64) error {
	if drop == 0 || st.db.nodeID() == "" {
		return nil
	}
	var first int64
	err := tx.QueryRowContext(ctx, "SELECT COALESCE(MIN(number), 0) FROM audit").Scan(&first)
	if err == nil && first > drop {
		err = fault.New(fault.StoreFailed, "profiles.add_audit", "another node has deleted the old entries of the audit log")
	}
	return err
}

// AuditPage implements [profiles.AuditStore].
func (st *Audit) AuditPage(ctx context.Context, f profiles.AuditFilter) ([]profiles.AuditEntry, int64, error) {
	where, args := auditConditions(f)
	query := "SELECT " + auditColumns + " FROM audit"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY number"
	if !f.OldestFirst {
		query += " DESC"
	}
	limit := limited(f.Limit)
	if f.Limit > 0 {
		limit++ // one more row shows whether another page follows
	}
	page, err := collect(ctx, st.db.reader, scanAudit, query+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, 0, failure("profiles.audit_page", err)
	}
	if f.Limit > 0 && len(page) > f.Limit {
		return page[:f.Limit], page[f.Limit-1].Number, nil
	}
	return page, 0, nil
}

// auditConditions returns the conditions of a filter and their values.
func auditConditions(f profiles.AuditFilter) (where []string, args []any) {
	add := func(given bool, condition string, values ...any) {
		if given {
			where, args = append(where, condition), append(args, values...)
		}
	}
	add(f.UserID != "", "user_id = ?", []byte(f.UserID))
	add(f.KeyID != "", "key_id = ?", f.KeyID)
	add(f.Call != "", "call = ?", f.Call)
	add(f.SessionID != "", "session_id = ? AND session_id <> ''", f.SessionID)
	add(f.Object != "", "(snapshot_id = ? OR object = ?)", f.Object, f.Object)
	add(f.Outcome != "", "outcome = ?", f.Outcome)
	add(!f.Since.IsZero(), "at >= ?", stamp(f.Since))
	add(!f.Until.IsZero(), "at < ?", stamp(f.Until))
	add(f.Others, "(user_id <> key_user AND LENGTH(user_id) > 0 AND LENGTH(key_user) > 0 OR object = ? AND LENGTH(user_id) = 0)", profiles.AuditEverybody)
	add(f.StartAfter > 0 && f.OldestFirst, "number > ?", f.StartAfter)
	add(f.StartAfter > 0 && !f.OldestFirst, "number < ?", f.StartAfter)
	return where, args
}
