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
	"github.com/stasisd/stasis/session/library/audit"
	"github.com/stasisd/stasis/snapshot"
)

// sameStore refuses a store that has none of the snapshots that the catalogue
// names: it is not the daemon's, and a verb that believes it is would find nothing
// to do and call it done. It comes before open, which makes a store that is not there.
func (s *storage) sameStore(ctx context.Context) (err error) {
	database, err := s.flags.catalogueFile(s.dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	catalogue, err := sqldb.Open(ctx, sqldb.Options{Path: database, Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, catalogue.Close()) }()
	at, err := s.flags.place(s.dir)
	if err != nil {
		return err
	}
	looked := at
	if _, err := os.Stat(at.dir); at.dir != "" && errors.Is(err, fs.ErrNotExist) {
		looked = storeURL{memory: true} // as empty as one that is not there
	}
	store, err := looked.open(ctx, s.flags.s3Flags, filepath.Join(s.dir, "spool"), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	vault := snapshot.NewVault(store, snapshot.Keys{}, snapshot.Options{Now: time.Now})
	named, has, err := audit.HasAny(ctx, vault, catalogue.Snapshots)
	if err != nil || has || named == 0 {
		return err
	}
	return fault.New(fault.Config, "storage.same_store",
		"%s has none of the %d snapshots that the catalogue names: give the daemon's --store; nothing was changed", at, named)
}
