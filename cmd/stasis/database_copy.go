//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// databaseCmd holds the verbs for the catalogue that need no daemon.
type databaseCmd struct {
	Copy databaseCopyCmd `cmd:"" help:"Copy a catalogue into an empty one, from SQLite to PostgreSQL or back, and compare every row."`
}

type databaseCopyCmd struct {
	From catalogueAddress `arg:"" help:"The catalogue to copy: a file, such as stasis.db in a data directory, or a postgres:// URL. No daemon may use it."`
	To   catalogueAddress `arg:"" help:"Where to copy it: a file that does not exist, or the URL of an empty database."`
}

// Run copies the catalogue, in one transaction, and prints the number of rows of each table.
func (c *databaseCopyCmd) Run(ctx context.Context) (err error) {
	defer func() { err = interrupted(ctx, err, "interrupted: nothing was copied") }()
	const op = "database.copy"
	if c.From == c.To {
		return fault.New(fault.Config, op, "TO: must be another catalogue than FROM")
	}
	if err := errors.Join(c.From.checkCopy("FROM"), c.To.checkCopy("TO")); err != nil {
		return err
	}
	if !catalogueExists(string(c.From)) {
		return fault.New(fault.Config, op, "FROM: %s does not exist; give the daemon's stasis.db, or its --database", c.From)
	}
	for _, one := range []struct {
		name string
		at   catalogueAddress
	}{{"FROM", c.From}, {"TO", c.To}} {
		unlock, locked := one.at.lockCopy(one.name)
		if locked != nil {
			return locked
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	from, err := sqldb.Open(ctx, sqldb.Options{Path: string(c.From), Now: time.Now, ReadOnly: true, Exclusive: true})
	if err != nil {
		return copyFailure("FROM", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := sqldb.Open(ctx, sqldb.Options{Path: string(c.To), Now: time.Now, Exclusive: true})
	if err != nil {
		return copyFailure("TO", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	done, err := to.Transfer(ctx, from)
	if err != nil {
		return err
	}
	rows := int64(0)
	for _, table := range done {
		fmt.Printf("%-20s %8d\n", table.Table, table.Rows)
		rows += table.Rows
	}
	fmt.Printf("copied %d rows, read them back, and compared each; start the daemon with --database at the copy\n", rows)
	return nil
}

// checkCopy checks FROM or TO before anything is opened.
func (a catalogueAddress) checkCopy(name string) error {
	if a == sqldb.Memory {
		return fault.New(fault.Config, "database.copy", "%s: a catalogue in :memory: exists only while its daemon runs; give a file or a URL", name)
	}
	return copyFailure(name, storageFlags{Database: a}.checkDatabase())
}

// copyFailure names the argument that an error is about, in place of --database.
func copyFailure(name string, err error) error {
	var known *fault.Error
	if err == nil || !errors.As(err, &known) {
		return err
	}
	named := *known
	named.Message = name + ": " + strings.TrimPrefix(fault.MessageOf(known), "--database: ")
	return &named
}

// lockCopy locks a file as its daemon does. A database in PostgreSQL is locked when it is
// opened.
func (a catalogueAddress) lockCopy(name string) (unlock func() error, err error) {
	path := string(a)
	if sqldb.Remote(path) {
		return func() error { return nil }, nil
	}
	if _, err := os.Stat(path + ".lock"); err == nil {
		return lockCatalogue(path, name)
	}
	dir := filepath.Dir(path)
	if err := checkOwner(dir, os.Geteuid()); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil || filepath.Base(path) != "stasis.db" {
		return func() error { return nil }, nil // no daemon has used it
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetFlag(os.O_RDONLY))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, "database.copy", name+": the data directory cannot be locked")
	}
	if !ok {
		return nil, fault.New(fault.DataDirInUse, "database.copy", "%s: a stasis runs on %s; stop it first", name, dir)
	}
	return lock.Unlock, nil
}
