//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// catalogueAddress is the text of --database.
type catalogueAddress string

// secret reports whether the value must not be shown: a URL may contain a password.
func (a catalogueAddress) secret() bool { return strings.Contains(string(a), "://") }

// checkDatabase refuses a --database that cannot work, before any file is created.
func (c storageFlags) checkDatabase() error {
	const op = "storage.database"
	path := string(c.Database)
	if path == "" || path == sqldb.Memory {
		return nil
	}
	if sqldb.Remote(path) {
		if err := sqldb.CheckURL(path); err != nil {
			return fault.New(fault.Config, op, "--database: %v", err)
		}
		return nil
	}
	if strings.HasPrefix(path, ":") || c.Database.secret() {
		return fault.New(fault.Config, op, "--database: must be a file, :memory:, or a URL postgres://USER@HOST/DATABASE; other databases are not supported")
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fault.New(fault.Config, op, "--database: %s is not a regular file", path)
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return fault.New(fault.Config, op, "--database: the folder %s does not exist", filepath.Dir(path))
		}
	case err != nil:
		return fault.Wrap(err, fault.Config, op, "--database: cannot be used")
	}
	return nil
}

// catalogueFile returns the path or URL of the catalogue, for verbs that work without a
// daemon.
func (c storageFlags) catalogueFile(dir string) (string, error) {
	if c.Database == sqldb.Memory {
		return "", fault.New(fault.Config, "storage.database", "--database: a catalogue in :memory: exists only while its daemon runs; give a file")
	}
	if c.Database != "" {
		return string(c.Database), c.checkDatabase()
	}
	return filepath.Join(dir, "stasis.db"), nil
}

// catalogueName names the catalogue in errors. A URL may contain a password.
func (c storageFlags) catalogueName(dir string) string {
	switch {
	case sqldb.Remote(string(c.Database)):
		return "--database"
	case c.Database != "":
		return string(c.Database)
	}
	return filepath.Join(dir, "stasis.db")
}

// catalogueExists reports whether there is a catalogue at a path. One at a URL counts as
// existing.
func catalogueExists(path string) bool {
	if sqldb.Remote(path) {
		return true
	}
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// database returns the path or URL of the catalogue; "" means the data directory. The lock of
// the data directory does not protect a file elsewhere from a second daemon, so database
// locks that file too. A PostgreSQL database is locked when it is opened.
func (c storageFlags) database(s *storage) (string, error) {
	if c.Database == "" || c.Database == sqldb.Memory || sqldb.Remote(string(c.Database)) {
		return string(c.Database), nil
	}
	unlock, err := lockCatalogue(string(c.Database), "--database")
	if err != nil {
		return "", err
	}
	s.closers = append(s.closers, unlock)
	return string(c.Database), nil
}

// lockCatalogue locks a catalogue's file that is not in its daemon's data directory. name is
// the setting that named it.
func lockCatalogue(path, name string) (unlock func() error, err error) {
	const op = "storage.database"
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, op, name+": cannot create the lock file beside it")
	}
	if !ok {
		return nil, fault.New(fault.DataDirInUse, op, "%s: another stasis uses %s; stop that process, or give another file", name, path)
	}
	return lock.Unlock, nil
}
