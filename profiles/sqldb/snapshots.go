package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Snapshots is the store of the records of snapshots. It implements
// [profiles.SnapshotStore] and [profiles.RetentionStore].
type Snapshots struct {
	db  *handle
	now func() time.Time // the time at which a commit moves a default
}

var (
	_ profiles.SnapshotStore  = (*Snapshots)(nil)
	_ profiles.RetentionStore = (*Snapshots)(nil)
)

const (
	unreported = "snapshot_id, sequence, session_id, user_id, mode, rescue, auto, label, created_at, expires_at, " +
		"archive_id, size_bytes, datadir, chrome, engine, "
	snapshotColumns = unreported + "report"
	bareColumns     = unreported + "NULL"
)

func scanSnapshot(r row) (profiles.Snapshot, error) {
	var s profiles.Snapshot
	var user, report []byte
	err := r.Scan(&s.ID, &s.Sequence, &s.SessionID, &user, &s.Mode, &s.Rescue, &s.Auto, &s.Label, moment{&s.CreatedAt},
		moment{&s.ExpiresAt}, &s.ArchiveID, &s.SizeBytes, &s.Datadir, &s.Chrome, &s.Engine, &report)
	s.UserID, s.Report = string(user), report
	return s, err
}

func snapshotByID(ctx context.Context, q querier, id, op string) (profiles.Snapshot, error) {
	s, err := scanSnapshot(q.QueryRowContext(ctx, "SELECT "+snapshotColumns+" FROM snapshots WHERE snapshot_id = ?", id))
	return s, orMissing(err, fault.SnapshotNotFound, op)
}

// addSnapshot gives the snapshot the next commit sequence, with the conversation and the task
// of its session, and makes it visible. The caller has locked the session. The database assigns
// the sequence, so commits of different sessions do not wait for each other: those of one
// session are in the order of their sequences.
func addSnapshot(ctx context.Context, tx *sql.Tx, s profiles.Snapshot) error {
	talk, task, err := talkNow(ctx, tx, s.SessionID)
	if err != nil {
		return err
	}
	var sequence int64
	err = tx.QueryRowContext(ctx, "INSERT INTO commits (snapshot_id, session_id) VALUES (?, ?) RETURNING sequence", s.ID, s.SessionID).Scan(&sequence)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO snapshots ("+snapshotColumns+
		", talk, execution) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		s.ID, sequence, s.SessionID, []byte(s.UserID), s.Mode, s.Rescue, s.Auto, s.Label, stamp(s.CreatedAt), stamp(s.ExpiresAt),
		s.ArchiveID, s.SizeBytes, s.Datadir, s.Chrome, s.Engine, blob(s.Report), talk.String(), task)
	if err != nil {
		return err
	}
	return addExtensions(ctx, tx, s)
}

// Snapshot implements [profiles.SnapshotStore].
func (st *Snapshots) Snapshot(ctx context.Context, id string) (profiles.Snapshot, error) {
	return snapshotByID(ctx, st.db.reader, id, "profiles.snapshot")
}

// NewestSnapshot implements [profiles.SnapshotStore].
func (st *Snapshots) NewestSnapshot(ctx context.Context, sessionID string) (profiles.Snapshot, error) {
	const op = "profiles.newest_snapshot"
	s, err := scanSnapshot(st.db.reader.QueryRowContext(ctx, "SELECT "+snapshotColumns+
		" FROM snapshots WHERE session_id = ? ORDER BY sequence DESC LIMIT 1", sessionID))
	if !errors.Is(err, sql.ErrNoRows) {
		return s, failure(op, err)
	}
	if _, err := sessionByID(ctx, st.db.reader, sessionID, op); err != nil {
		return profiles.Snapshot{}, err
	}
	return profiles.Snapshot{}, orMissing(err, fault.NoSnapshot, op)
}

// Snapshots implements [profiles.SnapshotStore].
func (st *Snapshots) Snapshots(ctx context.Context, f profiles.SnapshotFilter) ([]profiles.Snapshot, string, error) {
	const op = "profiles.snapshots"
	var where string
	var args []any
	if f.SessionID != "" {
		where, args = where+" AND s.session_id = ?", append(args, f.SessionID)
	}
	if f.UserID != "" {
		where, args = where+" AND s.user_id = ?", append(args, []byte(f.UserID))
	}
	before := limited(0)
	if f.StartAfter != "" {
		// The cursor must be one that this filter may have returned. It outlives its
		// snapshot.
		err := st.db.reader.QueryRowContext(ctx, "SELECT c.sequence FROM commits c JOIN sessions s ON s.session_id = c.session_id"+
			" WHERE c.snapshot_id = ?"+where, append([]any{f.StartAfter}, args...)...).Scan(&before)
		if err != nil {
			return nil, "", badCursor(err, op)
		}
	}
	limit := limited(f.Limit)
	if f.Limit > 0 {
		limit++ // one more tells whether a page follows
	}
	columns := snapshotColumns
	if f.OmitReports {
		columns = bareColumns
	}
	page, err := collect(ctx, st.db.reader, scanSnapshot, "SELECT "+columns+
		" FROM snapshots s WHERE s.sequence < ?"+where+" ORDER BY s.sequence DESC LIMIT ?",
		append(append([]any{before}, args...), limit)...)
	if err != nil {
		return nil, "", failure(op, err)
	}
	if f.Limit > 0 && len(page) > f.Limit {
		return page[:f.Limit], page[f.Limit-1].ID, nil
	}
	return page, "", nil
}

// badCursor returns the error for a cursor that was not found.
func badCursor(err error, op string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fault.New(fault.InvalidField, op, "start_after: must be an ID from this list")
	}
	return failure(op, err)
}

// ExpiredSnapshots implements [profiles.RetentionStore].
func (st *Snapshots) ExpiredSnapshots(ctx context.Context, now time.Time) ([]profiles.Snapshot, error) {
	all, err := collect(ctx, st.db.reader, scanSnapshot, "SELECT "+snapshotColumns+` FROM snapshots
		WHERE expires_at > 0 AND expires_at <= ? AND snapshot_id NOT IN (`+defaultSnapshots+`)
		ORDER BY expires_at, sequence`, stamp(now))
	return all, failure("profiles.expired_snapshots", err)
}

// DeleteSnapshot implements [profiles.SnapshotStore].
func (st *Snapshots) DeleteSnapshot(ctx context.Context, id string) (lastUse bool, err error) {
	return st.deleteRecord(ctx, "profiles.delete_snapshot", id, profiles.NeededByDefault)
}

// RetireSnapshot implements [profiles.RetentionStore].
func (st *Snapshots) RetireSnapshot(ctx context.Context, id string) (lastUse bool, err error) {
	return st.deleteRecord(ctx, "profiles.retire_snapshot", id, profiles.NeededByDefault, profiles.NeededBySession)
}

// ArchiveInUse implements [profiles.SnapshotStore].
func (st *Snapshots) ArchiveInUse(ctx context.Context, archiveID string) (bool, error) {
	var used bool
	err := st.db.reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM snapshots WHERE archive_id = ?)", archiveID).Scan(&used)
	return used, failure("profiles.archive_in_use", err)
}

// StoredByUser implements [profiles.SnapshotStore].
func (st *Snapshots) StoredByUser(ctx context.Context, userID string) (profiles.Stored, error) {
	stored, err := storedByUser(ctx, st.db.reader, userID)
	return stored, failure("profiles.stored", err)
}

// StoredByKey implements [profiles.SnapshotStore].
func (st *Snapshots) StoredByKey(ctx context.Context, keyID string) (profiles.Stored, error) {
	stored, err := storedByKey(ctx, st.db.reader, keyID)
	return stored, failure("profiles.stored", err)
}

// The database keeps these sums itself (migration 24). Counting would take longer with every
// snapshot of the user, and with every session that the key has made.
func storedByUser(ctx context.Context, q querier, userID string) (profiles.Stored, error) {
	return stored(q.QueryRowContext(ctx, "SELECT snapshots, bytes FROM stored_by_user WHERE user_id = ?", []byte(userID)))
}

func storedByKey(ctx context.Context, q querier, keyID string) (profiles.Stored, error) {
	return stored(q.QueryRowContext(ctx, "SELECT snapshots, bytes FROM stored_by_key WHERE key_id = ?", keyID))
}

// stored reads a sum. One who has never stored anything has no row.
func stored(r row) (s profiles.Stored, err error) {
	if err = r.Scan(&s.Snapshots, &s.Bytes); errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return s, err
}

// whyNeeded maps what needs a snapshot to a message.
var whyNeeded = map[profiles.NeededBy]string{
	profiles.NeededByDefault: "the snapshot is the user's default environment",
	profiles.NeededBySession: "a session that has not ended started from the snapshot, or it is the session's newest snapshot",
}

// deleteRecord removes a snapshot's record, unless one of these needs the snapshot.
func (st *Snapshots) deleteRecord(ctx context.Context, op, id string, unless ...profiles.NeededBy) (lastUse bool, err error) {
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		s, err := snapshotByID(ctx, tx, id, op)
		if err != nil {
			return err
		}
		needed, err := neededSnapshots(ctx, tx, s.UserID)
		if err != nil {
			return err
		}
		for _, n := range needed {
			if n.SnapshotID == id && slices.Contains(unless, n.By) {
				return fault.New(fault.SnapshotInUse, op, "%s", whyNeeded[n.By])
			}
		}
		if err := st.db.checkHolds(ctx, tx, id, op); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM snapshots WHERE snapshot_id = ?", id); err != nil {
			return err
		}
		var others int
		err = tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM snapshots WHERE archive_id = ?", s.ArchiveID).Scan(&others)
		lastUse = others == 0 && s.ArchiveID != ""
		return err
	})
	return lastUse && err == nil, err
}
