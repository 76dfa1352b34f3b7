package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

var _ profiles.PackedExtensionStore = (*Extensions)(nil)

// extensionChunk is the number of bytes of one row.
const extensionChunk = 1 << 20

// ExtensionFiles implements [profiles.PackedExtensionStore].
func (st *Extensions) ExtensionFiles(ctx context.Context) (map[string]bool, error) {
	type files struct {
		sha    string
		stored bool
	}
	all, err := collect(ctx, st.db.reader, func(r row) (f files, err error) { return f, r.Scan(&f.sha, &f.stored) },
		"SELECT DISTINCT sha256, EXISTS (SELECT 1 FROM extension_chunks c WHERE c.sha256 = e.sha256) FROM extensions e")
	if err != nil {
		return nil, failure("profiles.extension_files", err)
	}
	stored := make(map[string]bool, len(all))
	for _, f := range all {
		stored[f.sha] = f.stored
	}
	return stored, nil
}

// AddPackedExtension implements [profiles.PackedExtensionStore].
func (st *Extensions) AddPackedExtension(ctx context.Context, sha256 string, packed *io.SectionReader) error {
	return st.addPacked(ctx, "profiles.add_packed_extension", sha256, packed)
}

// addPacked stores the files of an extension in chunks, all in one transaction, unless they
// are stored. It reads nothing that others write, so no transaction about other files
// conflicts with it.
func (st *Extensions) addPacked(ctx context.Context, op, sha string, packed *io.SectionReader) error {
	chunk := make([]byte, min(extensionChunk, packed.Size()))
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		for at := int64(0); at < packed.Size(); at += int64(len(chunk)) {
			n, err := packed.ReadAt(chunk, at)
			if err != nil && !errors.Is(err, io.EOF) {
				return fault.Wrap(err, fault.StoreFailed, op, "the files of the extension cannot be read")
			}
			r, err := tx.ExecContext(ctx, "INSERT INTO extension_chunks (sha256, number, bytes) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
				sha, at/extensionChunk, chunk[:n])
			if err != nil {
				return err
			}
			if added, err := r.RowsAffected(); err != nil || added == 0 {
				return err // all are stored
			}
		}
		return nil
	})
}

// errFilesGone says that the files of an extension were removed before they were recorded.
var errFilesGone = errors.New("the files of the extension were removed meanwhile")

// requireChunks returns errFilesGone if the files of an extension are not stored.
func requireChunks(ctx context.Context, tx *sql.Tx, sha string) error {
	var one int
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM extension_chunks WHERE sha256 = ? AND number = 0", sha).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return errFilesGone
	}
	return err
}

// RemoveUnusedExtensions implements [profiles.PackedExtensionStore].
func (st *Extensions) RemoveUnusedExtensions(ctx context.Context) error {
	const op = "profiles.remove_unused_extensions"
	unused, err := collect(ctx, st.db.reader, func(r row) (sha string, err error) { return sha, r.Scan(&sha) },
		"SELECT sha256 FROM extension_chunks c WHERE number = 0 AND NOT EXISTS (SELECT 1 FROM extensions e WHERE e.sha256 = c.sha256)")
	if err != nil {
		return failure(op, err)
	}
	for _, sha := range unused {
		err := st.db.write(ctx, op, func(tx *sql.Tx) error {
			_, err := unusedFiles(ctx, tx, sha)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// PackedExtension implements [profiles.PackedExtensionStore]. One statement reads all chunks,
// so a delete meanwhile does not matter.
func (st *Extensions) PackedExtension(ctx context.Context, sha256 string, w io.Writer) (err error) {
	const op = "profiles.packed_extension"
	rows, err := st.db.reader.QueryContext(ctx, "SELECT bytes FROM extension_chunks c WHERE sha256 = ? "+
		"AND EXISTS (SELECT 1 FROM extensions e WHERE e.sha256 = c.sha256) ORDER BY number", sha256)
	if err != nil {
		return failure(op, err)
	}
	defer func() { err = failure(op, errors.Join(err, rows.Close())) }()
	found := false
	for ; rows.Next(); found = true {
		var chunk sql.RawBytes // valid until the next row
		if err := rows.Scan(&chunk); err != nil {
			return err
		}
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil || found {
		return err
	}
	n, err := recordsOf(ctx, st.db.reader, sha256)
	switch {
	case err != nil:
		return err
	case n == 0:
		return fault.New(fault.ExtensionNotFound, op, "the extension has been deleted")
	}
	return fault.New(fault.StoreFailed, op, "the files of the extension are lost; upload it again")
}
