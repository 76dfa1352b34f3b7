//go:build linux

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/snapshot"
)

// storeCmd holds the verbs for the snapshot store that need no daemon.
type storeCmd struct {
	Check storeCheckCmd `cmd:"" help:"Check the snapshot store for damage, and repair what can be repaired."`
	Copy  storeCopyCmd  `cmd:"" help:"Copy every snapshot of one store into another."`
}

// openExisting opens what is stored. It creates nothing and does not migrate the catalogue.
// With write it locks the data directory, so that no daemon runs. The catalogue stays nil
// if it is missing. The caller closes the storage.
func (f storageFlags) openExisting(ctx context.Context, write bool) (_ *storage, err error) {
	const op = "storage.existing"
	dir, err := f.dataDir()
	if err != nil {
		return nil, err
	}
	at, err := f.place(dir)
	if err != nil {
		return nil, err
	}
	if at.memory {
		return nil, fault.New(fault.Config, op, "--store: a store in mem:// exists only while its daemon runs; give another one")
	}
	for _, folder := range []string{dir, at.dir} {
		if _, err := os.Stat(folder); folder != "" && errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.Config, op, "the folder %s does not exist; give the daemon's --data-dir and --store", folder)
		}
	}
	s := &storage{dir: dir, flags: f}
	if write {
		if s, err = f.acquireOffline(); err != nil {
			return nil, err
		}
	}
	s.at = at
	if err := s.openExisting(ctx, write); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *storage) openExisting(ctx context.Context, write bool) (err error) {
	path, err := s.flags.catalogueFile(s.dir)
	if err != nil {
		return err
	}
	if catalogueExists(path) {
		s.catalogue, err = sqldb.Open(ctx, sqldb.Options{Path: path, Now: time.Now, ReadOnly: true})
		if err != nil {
			return err
		}
		s.closers = append(s.closers, s.catalogue.Close)
	}
	if s.store, err = s.at.open(ctx, s.flags.s3Flags, filepath.Join(s.dir, "spool"), !write); err != nil {
		return err
	}
	s.closers = append(s.closers, s.store.Close)
	if s.keys, err = s.existingKeys(ctx); err != nil {
		return err
	}
	s.vault = snapshot.NewVault(s.store, s.keys, snapshot.Options{Now: time.Now})
	return nil
}

// existingKeys loads the keys and never makes any.
func (s *storage) existingKeys(ctx context.Context) (snapshot.Keys, error) {
	from, err := s.flags.config(ctx, s.dir)
	if err != nil {
		return snapshot.Keys{}, err
	}
	from.ReadOnly = true
	return snapshot.LoadKeys(from)
}
