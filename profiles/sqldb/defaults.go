package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Defaults is the store of the versions of default environments. It implements
// [profiles.DefaultStore].
type Defaults struct{ db *handle }

var _ profiles.DefaultStore = (*Defaults)(nil)

const defaultColumns = "user_id, version, snapshot_id, session_id, moved_at, renews"

// defaultSnapshots selects the snapshots that current defaults name.
const defaultSnapshots = `SELECT d.snapshot_id FROM defaults d
	WHERE d.version = (SELECT MAX(version) FROM defaults WHERE user_id = d.user_id)`

func scanDefault(r row) (profiles.Default, error) {
	var d profiles.Default
	var user []byte
	err := r.Scan(&user, &d.Version, &d.SnapshotID, &d.SessionID, moment{&d.MovedAt}, &d.Renews)
	d.UserID = string(user)
	return d, err
}

// currentDefault returns the user's current version: Version 0 if there never was one, an
// empty SnapshotID if it was removed.
func currentDefault(ctx context.Context, q querier, userID string) (profiles.Default, error) {
	d, err := scanDefault(q.QueryRowContext(ctx, "SELECT "+defaultColumns+
		" FROM defaults WHERE user_id = ? ORDER BY version DESC LIMIT 1", []byte(userID)))
	if errors.Is(err, sql.ErrNoRows) {
		return profiles.Default{UserID: userID}, nil
	}
	return d, err
}

// addDefault writes a version. The transaction is the only writer, and an existing
// version would violate the primary key.
func addDefault(ctx context.Context, tx *sql.Tx, d profiles.Default) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO defaults ("+defaultColumns+") VALUES (?, ?, ?, ?, ?, ?)",
		[]byte(d.UserID), d.Version, d.SnapshotID, d.SessionID, stamp(d.MovedAt), d.Renews)
	return err
}

// describeCurrent describes the current version for the message of a conflict.
func describeCurrent(d profiles.Default) string {
	switch {
	case d.Version == 0:
		return "there is no default environment"
	case d.SnapshotID == "":
		return fmt.Sprintf("version %d is current: the default was removed", d.Version)
	case d.SessionID == "":
		return fmt.Sprintf("version %d is current: it was set to snapshot %s", d.Version, d.SnapshotID)
	default:
		return fmt.Sprintf("version %d is current: session %s moved it to snapshot %s", d.Version, d.SessionID, d.SnapshotID)
	}
}

// Default implements [profiles.DefaultStore].
func (st *Defaults) Default(ctx context.Context, userID string) (profiles.Default, error) {
	const op = "profiles.default"
	d, err := currentDefault(ctx, st.db.reader, userID)
	if err == nil && d.SnapshotID == "" {
		err = sql.ErrNoRows
	}
	if err != nil {
		return profiles.Default{}, orMissing(err, fault.DefaultNotFound, op)
	}
	return d, nil
}

// SetDefault implements [profiles.DefaultStore].
func (st *Defaults) SetDefault(ctx context.Context, userID, snapshotID string, ifVersion *int64, at time.Time) (profiles.Default, error) {
	const op = "profiles.set_default"
	var next profiles.Default
	err := st.db.write(ctx, op, func(tx *sql.Tx) error {
		if snapshotID != "" {
			s, err := snapshotByID(ctx, tx, snapshotID, op)
			if err == nil && s.UserID != userID {
				err = orMissing(sql.ErrNoRows, fault.SnapshotNotFound, op)
			}
			if err != nil {
				return err
			}
		}
		now, err := currentDefault(ctx, tx, userID)
		if err != nil {
			return err
		}
		if ifVersion != nil && !(profiles.Move{From: *ifVersion}).MayReplace(now) {
			return fault.New(fault.VersionConflict, op, "%s", describeCurrent(now))
		}
		if snapshotID == "" && now.SnapshotID == "" {
			return orMissing(sql.ErrNoRows, fault.DefaultNotFound, op)
		}
		next = profiles.Default{UserID: userID, Version: now.Version + 1, SnapshotID: snapshotID, MovedAt: at.UTC()}
		return addDefault(ctx, tx, next)
	})
	if err != nil {
		return profiles.Default{}, err
	}
	return next, nil
}

// Defaults implements [profiles.DefaultStore].
func (st *Defaults) Defaults(ctx context.Context) ([]profiles.Default, error) {
	all, err := collect(ctx, st.db.reader, scanDefault, "SELECT "+defaultColumns+` FROM defaults d
		WHERE snapshot_id <> '' AND version = (SELECT MAX(version) FROM defaults WHERE user_id = d.user_id)
		ORDER BY user_id`)
	return all, failure("profiles.defaults", err)
}

// LastUsed implements [profiles.DefaultStore].
func (st *Defaults) LastUsed(ctx context.Context, userID, snapshotID string) (last time.Time, err error) {
	err = st.db.reader.QueryRowContext(ctx, `SELECT COALESCE(MAX(ended_at), 0) FROM sessions WHERE user_id = ?
		AND (base_snapshot_id = ? OR session_id = (SELECT session_id FROM snapshots WHERE snapshot_id = ?))`,
		[]byte(userID), snapshotID, snapshotID).Scan(moment{&last})
	return last, failure("profiles.last_used", err)
}

// DefaultHistory implements [profiles.DefaultStore].
func (st *Defaults) DefaultHistory(ctx context.Context, userID string, limit int, startAfter string) ([]profiles.PastDefault, string, error) {
	const op = "profiles.default_history"
	before := limited(0)
	if startAfter != "" {
		err := st.db.reader.QueryRowContext(ctx, "SELECT version FROM defaults WHERE user_id = ? AND CAST(version AS TEXT) = ?",
			[]byte(userID), startAfter).Scan(&before)
		if err != nil {
			return nil, "", badCursor(err, op)
		}
	}
	rows := limited(limit)
	if limit > 0 {
		rows++ // one more row shows whether another page follows
	}
	page, err := collect(ctx, st.db.reader, func(r row) (p profiles.PastDefault, err error) {
		var user []byte
		err = r.Scan(&user, &p.Version, &p.SnapshotID, &p.SessionID, moment{&p.MovedAt}, &p.Renews, &p.Available)
		p.UserID = string(user)
		return p, err
	}, "SELECT "+defaultColumns+", EXISTS (SELECT 1 FROM snapshots s WHERE s.snapshot_id = defaults.snapshot_id)"+
		" FROM defaults WHERE user_id = ? AND version < ? ORDER BY version DESC LIMIT ?", []byte(userID), before, rows)
	if err != nil {
		return nil, "", failure(op, err)
	}
	if limit > 0 && len(page) > limit {
		return page[:limit], strconv.FormatInt(page[limit-1].Version, 10), nil
	}
	return page, "", nil
}
