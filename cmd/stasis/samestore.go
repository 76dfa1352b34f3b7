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
	"github.com/stasisd/stasis/session/library/audit"
	"github.com/stasisd/stasis/snapshot"
)

// checkSameStore refuses a store that has none of the snapshots in the catalogue. Such a store
// is not the daemon's: a verb would find nothing to do there and report success. checkSameStore
// is called before open, which creates a missing store.
func (s *storage) checkSameStore(ctx context.Context) (err error) {
	database, err := s.flags.catalogueFile(s.dir)
	if err != nil {
		return err
	}
	if !catalogueExists(database) {
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
		looked = storeURL{memory: true} // a missing store is as empty as this one
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
		"--store: %s has none of the %d snapshots in the catalogue; nothing was changed, give the daemon's --store", at, named)
}
