package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Extensions is the store of the records of uploaded extensions. It implements
// [profiles.ExtensionStore].
type Extensions struct{ db *handle }

var _ profiles.ExtensionStore = (*Extensions)(nil)

const extensionColumns = "extension_id, user_id, sha256, name, version, size_bytes, created_at"

func scanExtension(r row) (profiles.Extension, error) {
	var e profiles.Extension
	var user []byte
	err := r.Scan(&e.ID, &user, &e.SHA256, &e.Name, &e.Version, &e.SizeBytes, moment{&e.CreatedAt})
	e.UserID = string(user)
	return e, err
}

func extensionByID(ctx context.Context, q querier, userID, id string) (profiles.Extension, error) {
	return scanExtension(q.QueryRowContext(ctx, "SELECT "+extensionColumns+
		" FROM extensions WHERE user_id = ? AND extension_id = ?", []byte(userID), id))
}

// PutExtension implements [profiles.ExtensionStore]. The files are stored in a transaction
// before that of the record, because transactions that read and write records conflict with
// each other: they are tried again, and that is to be quick. The record's transaction fails if
// the files are gone.
func (st *Extensions) PutExtension(ctx context.Context, e profiles.Extension, packed *io.SectionReader) (is profiles.Extension, fresh bool, unused string, err error) {
	const op = "profiles.put_extension"
	for attempt := 1; ; attempt++ {
		if packed != nil {
			err = st.addPacked(ctx, op, e.SHA256, packed)
		}
		if err == nil {
			is, fresh, unused, err = st.record(ctx, op, e, packed != nil)
		}
		switch {
		case err == nil:
			return is, fresh, unused, nil
		case !errors.Is(err, errFilesGone):
			return profiles.Extension{}, false, "", err
		case attempt == maxAttempts:
			return profiles.Extension{}, false, "", contended(op, err)
		}
	}
}

// record records an extension. With stored, the error is errFilesGone if its files are not
// stored.
func (st *Extensions) record(ctx context.Context, op string, e profiles.Extension, stored bool) (is profiles.Extension, fresh bool, unused string, err error) {
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		is, fresh, unused = profiles.Extension{}, false, ""
		if stored {
			if err := requireChunks(ctx, tx, e.SHA256); err != nil {
				return err
			}
		}
		was, err := extensionByID(ctx, tx, e.UserID, e.ID)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && was.SHA256 == e.SHA256 {
			is = was
			return nil
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO extensions ("+extensionColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (user_id, extension_id) DO UPDATE SET sha256 = excluded.sha256, name = excluded.name,
			version = excluded.version, size_bytes = excluded.size_bytes, created_at = excluded.created_at`,
			e.ID, []byte(e.UserID), e.SHA256, e.Name, e.Version, e.SizeBytes, stamp(e.CreatedAt))
		if err != nil {
			return err
		}
		fresh = true
		if is, err = extensionByID(ctx, tx, e.UserID, e.ID); err != nil {
			return err
		}
		unused, err = unusedFiles(ctx, tx, was.SHA256)
		return err
	})
	return is, fresh, unused, err
}

// unusedFiles returns sha if no extension's record names it, else "". It deletes those files
// if they are stored.
func unusedFiles(ctx context.Context, tx *sql.Tx, sha string) (string, error) {
	n, err := recordsOf(ctx, tx, sha)
	if err != nil || n > 0 {
		return "", err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM extension_chunks WHERE sha256 = ?", sha)
	return sha, err
}

// recordsOf returns how many records name files.
func recordsOf(ctx context.Context, q querier, sha string) (n int, err error) {
	err = q.QueryRowContext(ctx, "SELECT COUNT(*) FROM extensions WHERE sha256 = ?", sha).Scan(&n)
	return n, err
}

// Extension implements [profiles.ExtensionStore].
func (st *Extensions) Extension(ctx context.Context, userID, id string) (profiles.Extension, error) {
	e, err := extensionByID(ctx, st.db.reader, userID, id)
	return e, orMissing(err, fault.ExtensionNotFound, "profiles.extension")
}

// Extensions implements [profiles.ExtensionStore].
func (st *Extensions) Extensions(ctx context.Context, userID string) ([]profiles.Extension, error) {
	query, args := "SELECT "+extensionColumns+" FROM extensions", []any{}
	if userID != "" {
		query, args = query+" WHERE user_id = ?", []any{[]byte(userID)}
	}
	all, err := collect(ctx, st.db.reader, scanExtension, query+" ORDER BY created_at DESC, extension_id, user_id", args...)
	return all, failure("profiles.extensions", err)
}

// DeleteExtension implements [profiles.ExtensionStore].
func (st *Extensions) DeleteExtension(ctx context.Context, userID, id string, force bool) (unused string, err error) {
	const op = "profiles.delete_extension"
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		e, err := extensionByID(ctx, tx, userID, id)
		if err != nil {
			return orMissing(err, fault.ExtensionNotFound, op)
		}
		var needed int
		err = tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM snapshot_extensions
			JOIN snapshots ON snapshots.snapshot_id = snapshot_extensions.snapshot_id
			WHERE extension_id = ? AND snapshots.user_id = ?`, id, []byte(userID)).Scan(&needed)
		switch {
		case err != nil:
			return err
		case needed > 0 && !force:
			return fault.New(fault.ExtensionInUse, op,
				"%d of the user's snapshots have extension %s; they keep its files, so force=true deletes it without harm to them", needed, id)
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM extensions WHERE user_id = ? AND extension_id = ?", []byte(userID), id)
		if err == nil {
			unused, err = unusedFiles(ctx, tx, e.SHA256)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return unused, nil
}

// SnapshotExtensions implements [profiles.SnapshotStore].
func (st *Snapshots) SnapshotExtensions(ctx context.Context, snapshotID string) ([]profiles.PinnedExtension, error) {
	all, err := collect(ctx, st.db.reader, func(r row) (p profiles.PinnedExtension, err error) {
		return p, r.Scan(&p.ID, &p.SHA256)
	}, "SELECT extension_id, sha256 FROM snapshot_extensions WHERE snapshot_id = ? ORDER BY extension_id", snapshotID)
	return all, failure("profiles.snapshot_extensions", err)
}

// addExtensions records which extensions a new snapshot holds.
func addExtensions(ctx context.Context, tx *sql.Tx, s profiles.Snapshot) error {
	for _, p := range s.Extensions {
		_, err := tx.ExecContext(ctx, "INSERT INTO snapshot_extensions (snapshot_id, extension_id, sha256) VALUES (?, ?, ?)",
			s.ID, p.ID, p.SHA256)
		if err != nil {
			return err
		}
	}
	return nil
}
