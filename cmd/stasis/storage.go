//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/stasisd/stasis/backup"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/snapshot"
)

// storageFlags say where data is stored. The daemon has them, and so does every verb that
// works on the data directory without it.
type storageFlags struct {
	DataDir  string           `help:"Directory for all data; by default ~/.local/share/stasis, as root /var/lib/stasis." placeholder:"DIR"`
	Database catalogueAddress `help:"The catalogue: a file (by default stasis.db in the data directory), the postgres:// URL of a PostgreSQL database, or :memory: for one that is lost when the daemon stops." placeholder:"PATH"`
	storeFlags
	keyFlags
}

// storage is the stored data: the data directory with the catalogue, the snapshot store and
// the keys.
type storage struct {
	dir       string
	flags     storageFlags
	node      bool     // the catalogue is shared with other daemons
	at        storeURL // where store is
	catalogue *sqldb.DB
	claims    *claims.Releases // of the catalogue; nil: the daemon is no node
	store     snapshot.Store
	keys      snapshot.Keys
	vault     *snapshot.Vault
	closers   []func() error
}

// acquire creates the data directory and locks it against a second daemon. Its mode lets
// Chrome's users reach their run directories and see nothing else. The caller then calls
// open, and close in any case.
func (f storageFlags) acquire() (*storage, error) {
	s, err := f.lock()
	if err == nil && backup.RestoreInterrupted(s.dir) {
		return nil, errors.Join(fault.New(fault.Config, "storage.take",
			"--data-dir: a restore into %s was interrupted; run stasis backup restore again, or empty the directory", s.dir), s.close())
	}
	return s, err
}

// acquireOffline is acquire for a verb that writes while no daemon runs. It refuses what
// checkOwner refuses.
func (f storageFlags) acquireOffline() (*storage, error) {
	dir, err := f.dataDir()
	if err != nil {
		return nil, err
	}
	if err := checkOwner(dir, os.Geteuid()); err != nil {
		return nil, err
	}
	return f.acquire()
}

// checkOwner returns config if the user with the ID uid is root, and another user's daemon
// made the data directory's lock. That daemon could not read what root writes.
func checkOwner(dir string, uid int) error {
	info, err := os.Lstat(filepath.Join(dir, "lock"))
	if err != nil {
		return nil // no daemon has run here
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || uid != 0 || owner.Uid == 0 {
		return nil
	}
	return fault.New(fault.Config, "storage.owner",
		"--data-dir: the daemon of %s runs as the user with ID %d and could not read what root writes; run this command as that user: setpriv --reuid %d --regid %d --clear-groups stasis …",
		dir, owner.Uid, owner.Uid, owner.Gid)
}

// lock is acquire for the restore of a backup.
func (f storageFlags) lock() (*storage, error) {
	const op = "storage.take"
	dir, err := f.dataDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fault.Wrap(err, fault.Config, op, "--data-dir: cannot be created")
	}
	// No link is followed: root may work in another user's directory.
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|syscall.O_NOFOLLOW))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, op, "--data-dir: cannot be written")
	}
	if !ok {
		return nil, fault.New(fault.DataDirInUse, op, "--data-dir: another stasis runs on %s; stop that process, or give another directory", dir)
	}
	return &storage{dir: dir, flags: f, closers: []func() error{lock.Unlock}}, nil
}

// dataDir returns the absolute path of the data directory.
func (f storageFlags) dataDir() (string, error) { return dataDirOf(f.DataDir) }

// open opens the catalogue, the store and the keys, and creates them at the first start.
// database is the path or URL of the catalogue; "" means its default place in the data directory.
func (s *storage) open(ctx context.Context, database string) (err error) {
	if database == "" {
		database = filepath.Join(s.dir, "stasis.db")
	}
	s.catalogue, err = sqldb.Open(ctx, sqldb.Options{Path: database, Now: time.Now, Exclusive: !s.node, Node: s.node})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.catalogue.Close)
	if s.at, err = s.flags.place(s.dir); err != nil {
		return err
	}
	if s.store, err = s.at.open(ctx, s.flags.s3Flags, filepath.Join(s.dir, "spool"), false); err != nil {
		return err
	}
	s.closers = append(s.closers, s.store.Close)
	if s.keys, err = s.loadKeys(ctx); err != nil {
		return err
	}
	options := snapshot.Options{Now: time.Now}
	if s.node {
		s.claims = claims.NewReleases(s.catalogue.Claims, 0)
		s.closers = append(s.closers, s.claims.Close)
		options.Uses = s.claims
	}
	s.vault = snapshot.NewVault(s.store, s.keys, options)
	return nil
}

// loadKeys reads the keys; at the first start it makes them.
func (s *storage) loadKeys(ctx context.Context) (snapshot.Keys, error) {
	from, err := s.flags.config(ctx, s.dir)
	if err != nil {
		return snapshot.Keys{}, err
	}
	from.InUse = func() (bool, error) {
		some, err := s.store.List(ctx, snapshot.ArchiveFolder(), 1, "")
		return len(some) > 0, err
	}
	return snapshot.LoadKeys(from)
}

// close closes what take and open opened, in reverse order. It is idempotent.
func (s *storage) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}
