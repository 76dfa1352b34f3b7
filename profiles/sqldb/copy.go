package sqldb

import (
	"context"
	"errors"
	"os"

	"github.com/stasisd/stasis/fault"
)

// CopyTo writes the catalogue as it is at one moment to a file that is not there,
// readable by its owner alone: what is in the write-ahead log is in it. The daemon
// that has the catalogue goes on meanwhile. The file is durable when CopyTo returns;
// after an error it may be there, and is of no use. Errors are store_full, store_failed
// and timeout.
func (db *DB) CopyTo(ctx context.Context, path string) (err error) {
	const op = "profiles.copy"
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the copy of the catalogue cannot be made")
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// SQLite takes an empty file for one that is to be made, and keeps its mode.
	if _, err := db.handle.reader.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return failure(op, err)
	}
	return failure(op, f.Sync())
}
