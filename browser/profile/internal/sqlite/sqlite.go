// Package sqlite opens SQLite databases of a profile at rest, which somebody
// may have made to do harm, so that what is read of one stays within bounds.
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

// MaxFile bounds a database, in bytes: a jar of Chrome's, with 3300 cookies, has
// a few megabytes, and years of history some hundred.
const MaxFile = 128 << 20

// maxValue bounds a row, and each text and blob, in bytes: each is in memory
// whole, more than once, when it is looked at. A cookie has 4 KB at most and an
// address 2 MB.
const maxValue = 4 << 20

// ErrTooLarge is the error of a database that has more than MaxFile, and
// ErrNoFile of one that is not a plain file or has nothing in it.
var (
	ErrTooLarge = fmt.Errorf("it has more than %d MiB", MaxFile>>20)
	ErrNoFile   = errors.New("the database is not a plain file, or empty")
)

// errValue is the error of a database with a longer value.
var errValue = fmt.Errorf("it has a value of more than %d MiB", maxValue>>20)

// Open opens a database; it stays as it is unless write is set. Nothing that
// would run of its own is trusted. That no folder above the file is a link is the
// caller's to see to, who also closes the database. Besides the package's errors
// there are SQLite's.
func Open(ctx context.Context, file string, write bool) (*sql.DB, error) {
	if info, err := os.Lstat(file); err == nil && info.Size() > MaxFile {
		return nil, ErrTooLarge
	}
	if write {
		return Change(ctx, file)
	}
	return open(ctx, file, "mode=ro&immutable=1&_pragma=trusted_schema(0)")
}

// Change is Open for writing, for a database of any size: what it has is not read whole.
func Change(ctx context.Context, file string) (*sql.DB, error) {
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
	db.SetMaxOpenConns(1) // the one with the bound
	if err := bound(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func bound(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	_, err = sqlite.Limit(c, lib.SQLITE_LIMIT_LENGTH, maxValue)
	return errors.Join(err, c.Close())
}

// TooLarge tells which bound an error says was passed: ErrTooLarge or that of a
// value. Of any other error it is nil.
func TooLarge(err error) error {
	var told *sqlite.Error
	switch {
	case errors.Is(err, ErrTooLarge):
		return ErrTooLarge
	case errors.As(err, &told) && told.Code() == lib.SQLITE_TOOBIG:
		return errValue
	default:
		return nil
	}
}

// Damaged tells that an error is the database's own: its file is not one, or its
// schema or its values do not allow what was asked. A full disk is not among them.
func Damaged(err error) bool {
	var told *sqlite.Error
	if !errors.As(err, &told) {
		return false
	}
	switch told.Code() & 0xff { // without the extension
	case lib.SQLITE_ERROR, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_TOOBIG, lib.SQLITE_SCHEMA:
		return true
	}
	return false
}
