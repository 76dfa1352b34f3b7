// Package sqlite opens SQLite databases of a profile at rest. A database may be crafted,
// so the package limits what is read of it.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// MaxFile bounds a database, in bytes: a cookie jar of Chrome with 3300 cookies has a few
// megabytes, years of history a few hundred.
const MaxFile = 128 << 20

// maxValue bounds a row, and each text and blob, in bytes: SQLite keeps several copies of
// each in memory when it reads it. A cookie has at most 4 KB, an address 2 MB.
const maxValue = 4 << 20

// ErrTooLarge is the error for a database larger than MaxFile. ErrNoFile is the error for
// something that is not a regular file, or is empty.
var (
	ErrTooLarge = fmt.Errorf("it has more than %d MiB", MaxFile>>20)
	ErrNoFile   = errors.New("the database is not a plain file, or empty")
)

// errValue is the error for a database with a longer value.
var errValue = fmt.Errorf("it has a value of more than %d MiB", maxValue>>20)

// Open opens a database, read-only unless write is set. It does not trust the schema, so
// nothing in the file runs as code. The caller must make sure that no folder above the
// file is a link, and must close the database. Errors are those of this package and
// SQLite's.
func Open(ctx context.Context, file string, write bool) (*sql.DB, error) {
	if info, err := os.Lstat(file); err == nil && info.Size() > MaxFile {
		return nil, ErrTooLarge
	}
	if write {
		return OpenWritable(ctx, file)
	}
	return open(ctx, file, "mode=ro&immutable=1&_pragma=trusted_schema(0)")
}

// OpenWritable opens a database of any size for writing: it is not read into memory as a
// whole.
func OpenWritable(ctx context.Context, file string) (*sql.DB, error) {
	return open(ctx, file, "mode=rw&_pragma=trusted_schema(0)&_pragma=journal_mode(delete)")
}

func open(ctx context.Context, file, query string) (*sql.DB, error) {
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil, ErrNoFile
	}
	at := url.URL{Scheme: "file", Path: file, RawQuery: query}
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // the one with the limit
	if err := limitLength(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func limitLength(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	_, err = sqlite.Limit(c, lib.SQLITE_LIMIT_LENGTH, maxValue)
	return errors.Join(err, c.Close())
}

// TooLarge returns the limit that an error says was exceeded: ErrTooLarge, or that of a
// value. For any other error it returns nil.
func TooLarge(err error) error {
	var sqliteError *sqlite.Error
	switch {
	case errors.Is(err, ErrTooLarge):
		return ErrTooLarge
	case errors.As(err, &sqliteError) && sqliteError.Code() == lib.SQLITE_TOOBIG:
		return errValue
	default:
		return nil
	}
}

// Damaged reports whether an error is caused by the database itself: the file is not a
// database, or its schema or values do not allow the query. A full disk is not such an
// error.
func Damaged(err error) bool {
	var sqliteError *sqlite.Error
	if !errors.As(err, &sqliteError) {
		return false
	}
	switch sqliteError.Code() & 0xff { // without the extended code
	case lib.SQLITE_ERROR, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_TOOBIG, lib.SQLITE_SCHEMA:
		return true
	}
	return false
}
