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

// checkDatabase refuses a --database that cannot work, before any file is created.
func (c storageFlags) checkDatabase() error {
	const op = "storage.database"
	if c.Database == "" || c.Database == sqldb.Memory {
		return nil
	}
	if strings.HasPrefix(c.Database, ":") || strings.Contains(c.Database, "://") {
		return fault.New(fault.Config, op, "--database: must be a file or :memory:; other databases are not supported")
	}
	info, err := os.Stat(c.Database)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fault.New(fault.Config, op, "--database: %s is not a regular file", c.Database)
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Stat(filepath.Dir(c.Database)); err != nil || !info.IsDir() {
			return fault.New(fault.Config, op, "--database: the folder %s does not exist", filepath.Dir(c.Database))
		}
	case err != nil:
		return fault.Wrap(err, fault.Config, op, "--database: cannot be used")
	}
	return nil
}

// catalogueFile returns the path of the catalogue, for verbs that work without a daemon.
func (c storageFlags) catalogueFile(dir string) (string, error) {
	if c.Database == sqldb.Memory {
		return "", fault.New(fault.Config, "storage.database", "--database: a catalogue in :memory: exists only while its daemon runs; give a file")
	}
	if c.Database != "" {
		return c.Database, c.checkDatabase()
	}
	return filepath.Join(dir, "stasis.db"), nil
}

// database returns the path of the catalogue; "" means the data directory. The lock of the
// data directory does not protect a file elsewhere from a second daemon, so database locks
// that file too.
func (c storageFlags) database(s *storage) (string, error) {
	const op = "storage.database"
	if c.Database == "" || c.Database == sqldb.Memory {
		return c.Database, nil
	}
	lock := flock.New(c.Database+".lock", flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return "", fault.Wrap(err, fault.Config, op, "--database: cannot create the lock file beside it")
	}
	if !ok {
		return "", fault.New(fault.DataDirInUse, op, "--database: another stasis uses %s; stop that process, or give another file", c.Database)
	}
	s.closers = append(s.closers, lock.Unlock)
	return c.Database, nil
}
