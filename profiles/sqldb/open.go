package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"

	"github.com/stasisd/stasis/fault"
)

//go:embed migrations
var migrations embed.FS

// Memory is the Path of a database that is gone when it is closed.
const Memory = ":memory:"

const (
	busyTimeout = "10000" // milliseconds that a statement waits for another process's lock
	maxReaders  = 4
)

// Options say what to open.
type Options struct {
	Path string           // the database's file, made with mode 0600; or [Memory]
	Now  func() time.Time // the clock that tells when a commit moved a default
}

// Open opens the catalogue, makes it if there is none and brings its tables
// up to date. A database written by a newer Stasis is a config fault; a file
// that is no database or is damaged is store_failed and says so.
func Open(ctx context.Context, o Options) (*DB, error) {
	const op = "profiles.open"
	if o.Now == nil {
		return nil, fault.New(fault.Config, op, "the catalogue needs a clock")
	}
	db := &DB{now: o.Now}
	var err error
	if o.Path == Memory {
		db.writer, err = pool(Memory, url.Values{"_txlock": {"immediate"}}, 1)
		db.reader = db.writer
	} else {
		err = db.openFile(o.Path)
	}
	if err == nil {
		err = migrate(ctx, db.writer)
	}
	if err == nil {
		err = db.Health(ctx)
	}
	if err != nil {
		return nil, errors.Join(failure(op, err), db.abandon())
	}
	return db, nil
}

// openFile makes the file, readable by its owner alone, and both pools. SQLite
// gives the files of its log the same mode.
func (db *DB) openFile(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return err
	}
	name := (&url.URL{Scheme: "file", Path: path}).String()
	if db.writer, err = pool(name, url.Values{"_txlock": {"immediate"}}, 1); err != nil {
		return err
	}
	db.reader, err = pool(name, url.Values{"_query_only": {"1"}}, maxReaders)
	return err
}

// abandon closes what a failed Open had opened.
func (db *DB) abandon() error {
	var errs []error
	for _, p := range []*sql.DB{db.reader, db.writer} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// pool makes a pool of at most n connections to the database.
func pool(name string, query url.Values, n int) (*sql.DB, error) {
	query["_pragma"] = []string{
		"busy_timeout(" + busyTimeout + ")",
		"journal_mode(WAL)",
		"synchronous(FULL)", // in WAL mode NORMAL may lose the last commits with the power
		"foreign_keys(1)",
	}
	c, err := sqlite.NewConnector(name + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	p := sql.OpenDB(c)
	p.SetMaxOpenConns(n)
	p.SetMaxIdleConns(n)
	return p, nil
}

// migrate brings the tables to the newest version that the binary knows.
func migrate(ctx context.Context, db *sql.DB) error {
	const op = "profiles.migrate"
	files, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, known, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > known {
		return fault.New(fault.Config, op,
			"the catalogue has schema version %d and this binary knows only up to %d: it was written by a newer Stasis", current, known)
	}
	_, err = p.Up(ctx)
	return err
}
