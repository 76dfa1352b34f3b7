// Package torture_test kills processes that save, at random points, and looks
// at what stands afterwards. It starts no Chrome: what is saved is made up, by
// the same calls in the same order as session/keep.go makes them.
package torture_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, writeForever(context.Background(), dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// storage is a data directory, opened as a daemon opens it.
type storage struct {
	catalogue *sqldb.DB
	store     snapshot.Store
	vault     *snapshot.Vault
}

func openStorage(ctx context.Context, dir string) (_ *storage, err error) {
	s := &storage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.catalogue, err = sqldb.Open(ctx, sqldb.Options{Path: filepath.Join(dir, "stasis.db"), Now: time.Now}); err != nil {
		return nil, err
	}
	store, err := fsstore.Open(filepath.Join(dir, "snapshots"), fsstore.Options{})
	if err != nil {
		return nil, err
	}
	s.store = store
	keys, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: dir})
	if err != nil {
		return nil, err
	}
	s.vault = snapshot.NewVault(s.store, keys, snapshot.Options{Now: time.Now})
	return s, nil
}

func (s *storage) close() error {
	var errs []error
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.catalogue != nil {
		errs = append(errs, s.catalogue.Close())
	}
	return errors.Join(errs...)
}
