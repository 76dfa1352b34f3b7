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

// Memory is the Path of a database in memory, which ends when it is closed.
const Memory = ":memory:"

const (
	busyTimeout = "10000" // milliseconds that a statement waits for another process's lock
	maxReaders  = 4
)

// Options say what to open.
type Options struct {
	// Path is the database's file, created with mode 0600; or [Memory]; or the postgres:// URL
	// of a PostgreSQL database.
	Path string
	Now  func() time.Time // the clock for the time at which a commit moves a default
	// ReadOnly opens an existing file, even while a daemon has it open. Nothing is created
	// or migrated, and writes are store_failed.
	ReadOnly bool
	// Exclusive takes the lock of a PostgreSQL database, and returns data_dir_in_use if
	// another process holds it. Files are locked by the caller.
	Exclusive bool
	// Node opens a PostgreSQL database for one of several daemons that share it. It returns
	// data_dir_in_use if a daemon has the database to itself. Exclusive is ignored.
	Node bool
	// LeaseTime is how long a node's lease is valid; 0 means [profiles.LeaseTime].
	LeaseTime time.Duration
	// Ended is called after each transaction that writes, with the name of what it did and how
	// often it was tried again because of a conflict. It must be quick. nil: nothing is called.
	Ended func(op string, conflicts int)
}

// Open opens the catalogue, creates it if needed, and migrates its tables. A database of
// a newer Stasis is a config fault. A file that is damaged or is not a database is
// store_failed and the message says so.
func Open(ctx context.Context, o Options) (*DB, error) {
	const op = "profiles.open"
	if o.Now == nil {
		return nil, fault.New(fault.Config, op, "Now: must be set")
	}
	h := &handle{now: o.Now, ended: o.Ended}
	var err error
	switch {
	case o.Node && !Remote(o.Path):
		return nil, fault.New(fault.Config, op, "--node-url: nodes share a catalogue in PostgreSQL; give --database postgres://…")
	case o.Path == Memory:
		h.writer, err = pool(Memory, url.Values{"_txlock": {"immediate"}}, 1, journal...)
		h.reader = h.writer
	case Remote(o.Path):
		err = h.openPostgres(ctx, o)
	case o.ReadOnly:
		err = h.openReadOnly(o.Path)
	default:
		err = h.openFile(o.Path)
	}
	if err == nil && !Remote(o.Path) {
		err = migrate(ctx, goose.DialectSQLite3, "migrations/sqlite", h.writer, o.ReadOnly)
	}
	if err == nil {
		err = h.health(ctx)
	}
	if err != nil {
		return nil, errors.Join(failure(op, err), h.abandon())
	}
	return newDB(h, o.Now), nil
}

// openFile creates the file, readable by its owner only, and opens both pools. SQLite
// gives its log files the same mode.
func (h *handle) openFile(path string) error {
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
	if h.writer, err = pool(name, url.Values{"_txlock": {"immediate"}}, 1, journal...); err != nil {
		return err
	}
	h.reader, err = pool(name, url.Values{"_query_only": {"1"}}, maxReaders, journal...)
	return err
}

// openReadOnly opens a file while another process may write it. If there is no log,
// SQLite still creates an empty log with its index, and the next writer removes them.
func (h *handle) openReadOnly(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	h.writer, err = pool((&url.URL{Scheme: "file", Path: path}).String(), url.Values{"mode": {"ro"}}, maxReaders)
	h.reader = h.writer
	return err
}

// journal holds the settings of connections that may write.
var journal = []string{
	"journal_mode(WAL)",
	"synchronous(FULL)", // in WAL mode NORMAL may lose the last commits in a power loss
}

// abandon closes what a failed Open had opened.
func (h *handle) abandon() error {
	h.lock.Close()
	var errs []error
	for _, p := range []*sql.DB{h.reader, h.writer, h.leases} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// pool opens a pool of at most n connections to the database.
func pool(name string, query url.Values, n int, pragmas ...string) (*sql.DB, error) {
	query["_pragma"] = append([]string{"busy_timeout(" + busyTimeout + ")", "foreign_keys(1)"}, pragmas...)
	c, err := sqlite.NewConnector(name + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	p := sql.OpenDB(c)
	p.SetMaxOpenConns(n)
	p.SetMaxIdleConns(n)
	return p, nil
}

// migrate updates the tables to the newest version that the binary knows. If readOnly is
// set, it only checks that they have this version.
func migrate(ctx context.Context, dialect goose.Dialect, folder string, db *sql.DB, readOnly bool) error {
	const op = "profiles.migrate"
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, known, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > known {
		return fault.New(fault.Config, op,
			"the catalogue has schema version %d, but this binary knows only up to %d: a newer Stasis wrote it; use that version", current, known)
	}
	if readOnly {
		if current < known {
			return fault.New(fault.Config, op,
				"the catalogue has schema version %d, but this binary needs %d: start the daemon of this version once to update the catalogue", current, known)
		}
		return nil
	}
	_, err = p.Up(ctx)
	return err
}
