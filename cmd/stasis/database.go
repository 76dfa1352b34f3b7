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

// checkDatabase refuses a --database that cannot work, before anything is made.
func (c storageFlags) checkDatabase() error {
	const op = "storage.database"
	if c.Database == "" || c.Database == sqldb.Memory {
		return nil
	}
	if strings.HasPrefix(c.Database, ":") || strings.Contains(c.Database, "://") {
		return fault.New(fault.Config, op, "--database must be a file or :memory:; other databases are not built")
	}
	info, err := os.Stat(c.Database)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fault.New(fault.Config, op, "--database must be a file, and %s is none", c.Database)
	case errors.Is(err, fs.ErrNotExist):
		if info, err := os.Stat(filepath.Dir(c.Database)); err != nil || !info.IsDir() {
			return fault.New(fault.Config, op, "--database: there is no folder %s", filepath.Dir(c.Database))
		}
	case err != nil:
		return fault.Wrap(err, fault.Config, op, "--database cannot be used")
	}
	return nil
}

// catalogueFile is where the catalogue of the data directory is, for verbs that
// work without a daemon.
func (c storageFlags) catalogueFile(dir string) (string, error) {
	if c.Database == sqldb.Memory {
		return "", fault.New(fault.Config, "storage.database", "--database :memory: is gone with its daemon: there is nothing to look at")
	}
	if c.Database != "" {
		return c.Database, c.checkDatabase()
	}
	return filepath.Join(dir, "stasis.db"), nil
}

// database is where the catalogue is, "" in the data directory. The lock of
// that does not keep a second daemon with another one from a file elsewhere, so
// such a file has its own.
func (c storageFlags) database(s *storage) (string, error) {
	const op = "storage.database"
	if c.Database == "" || c.Database == sqldb.Memory {
		return c.Database, nil
	}
	lock := flock.New(c.Database+".lock", flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return "", fault.Wrap(err, fault.Config, op, "--database cannot be written beside")
	}
	if !ok {
		return "", fault.New(fault.DataDirInUse, op, "another stasis has the database %s", c.Database)
	}
	s.closers = append(s.closers, lock.Unlock)
	return c.Database, nil
}
