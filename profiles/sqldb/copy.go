package sqldb

import (
	"context"
	"errors"
	"os"

	"github.com/stasisd/stasis/fault"
)

// CopyTo writes a consistent copy of the catalogue to a new SQLite file, readable by its
// owner only. The copy includes the write-ahead log. The daemon that has the catalogue open can
// continue meanwhile. The file is durable when CopyTo returns. After an error a useless
// file may remain. Errors are store_full, store_failed and timeout.
func (db *DB) CopyTo(ctx context.Context, path string) (err error) {
	const op = "profiles.copy"
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the file for the copy of the catalogue cannot be created")
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if db.handle.remote {
		return db.copyRemote(ctx, path)
	}
	// SQLite takes an empty file for a new database, and keeps the file's mode.
	if _, err := db.handle.reader.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return failure(op, err)
	}
	return failure(op, f.Sync())
}

// copyRemote writes the rows of a PostgreSQL database to an empty file.
func (db *DB) copyRemote(ctx context.Context, path string) error {
	to, err := Open(ctx, Options{Path: path, Now: db.Snapshots.now})
	if err != nil {
		return err
	}
	if _, err := to.Transfer(ctx, db); err != nil {
		return errors.Join(err, to.Close())
	}
	// Without a log the file is complete alone. The change needs the only connection.
	err = to.handle.reader.Close()
	if err == nil {
		_, err = to.handle.writer.ExecContext(ctx, "PRAGMA journal_mode = DELETE")
	}
	return errors.Join(failure("profiles.copy", err), to.Close())
}
