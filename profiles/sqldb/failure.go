package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb/postgres"
)

// failure gives a database error its code: store_full if the disk is full, timeout if the
// context's deadline passed, catalogue_unavailable if PostgreSQL cannot be reached, else
// store_failed. The cause stays in the chain, so that a
// cancelled context is recognisable. A fault is returned unchanged.
func failure(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	switch {
	case errors.Is(err, postgres.ErrOutcomeUnknown):
		return fault.Wrap(errors.Join(profiles.ErrOutcomeUnknown, err), fault.CatalogueUnavailable, op,
			"the connection to the catalogue was lost during a commit, and whether it was committed is unknown; look before you try again")
	case postgres.Unavailable(err):
		return fault.Wrap(err, fault.CatalogueUnavailable, op, "")
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, op, "the catalogue did not answer in time; try again, and if it happens often, check the disk of stasis.db, or the server of --database")
	case postgres.Full(err):
		return fault.Wrap(err, fault.StoreFull, op, "the disk of the catalogue is full; free space on it")
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return fault.Wrap(err, fault.StoreFailed, op, "")
	}
	switch {
	case e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE: // no space for the log's index
		return fault.Wrap(err, fault.StoreFull, op, "")
	case primary(e) == sqlite3.SQLITE_FULL:
		return fault.Wrap(err, fault.StoreFull, op, "the disk of the catalogue is full; free space on it")
	case primary(e) == sqlite3.SQLITE_NOTADB:
		return fault.Wrap(err, fault.StoreFailed, op, "the catalogue (--database, or stasis.db in the data directory) is not a database; restore it from a backup")
	case primary(e) == sqlite3.SQLITE_CORRUPT:
		return fault.Wrap(err, fault.StoreFailed, op, "the catalogue (--database, or stasis.db in the data directory) is damaged; restore it from a backup")
	default:
		return fault.Wrap(err, fault.StoreFailed, op, "")
	}
}

// contended returns the error of a transaction that conflicted with others at every
// attempt. A violated constraint is not their doing.
func contended(op string, err error) error {
	if postgres.Violation(err) {
		return err
	}
	return fault.Wrap(err, fault.CatalogueUnavailable, op, "too many changes are made to the same records at once; try again")
}

// primary removes the extended part of SQLite's result code
// (https://www.sqlite.org/rescode.html).
func primary(e *sqlite.Error) int { return e.Code() & 0xff }

// orMissing turns the absence of a row into a fault with the code and its message.
func orMissing(err error, code fault.Code, op string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fault.New(code, op, "%s", code.Text())
	}
	return failure(op, err)
}

// requireRow checks that a statement changed a row, and returns the code if not.
func requireRow(r sql.Result, err error, code fault.Code, op string) error {
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		return fault.New(code, op, "%s", code.Text())
	}
	return err
}
