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

// storeCmd are the verbs about the snapshot store that need no daemon.
type storeCmd struct {
	Check storeCheckCmd `cmd:"" help:"Look for damage in the snapshot store, and put right what can be."`
	Copy  storeCopyCmd  `cmd:"" help:"Copy every snapshot of a store into another."`
}

// existing opens what is kept, makes nothing of it, and brings no catalogue up to
// date. To write, it takes the directory, so that no daemon runs; a catalogue that
// is missing stays nil. The caller closes it.
func (f storageFlags) existing(ctx context.Context, write bool) (_ *storage, err error) {
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
		return nil, fault.New(fault.Config, op, "--store mem:// is gone with its daemon: there is nothing to look at")
	}
	for _, folder := range []string{dir, at.dir} {
		if _, err := os.Stat(folder); folder != "" && errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.Config, op, "there is no %s", folder)
		}
	}
	s := &storage{dir: dir, flags: f}
	if write {
		if s, err = f.take(); err != nil {
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
	if _, missing := os.Stat(path); missing == nil {
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

// existingKeys loads the keys, and never makes any.
func (s *storage) existingKeys(ctx context.Context) (snapshot.Keys, error) {
	from, err := s.flags.config(ctx, s.dir)
	if err != nil {
		return snapshot.Keys{}, err
	}
	from.ReadOnly = true
	return snapshot.LoadKeys(from)
}
