// Package torture_test kills processes that save at random points, and checks what they
// leave. It starts no Chrome. The saved state is made up, by the same calls in the same
// order as in session/save/keep.go.
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
	"github.com/stasisd/stasis/session/library/audit"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
	"github.com/stasisd/stasis/snapshot/s3store"
)

func TestMain(m *testing.M) {
	if in := os.Getenv(childPlaces); in != "" {
		fmt.Fprintln(os.Stderr, writeForever(context.Background(), in))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// places says whether a directory's snapshots are in it or in a bucket.
type places struct {
	Dir    string
	Bucket *bucket
}

type bucket struct{ Endpoint, Name, Prefix, Region, AccessKey, SecretKey string }

// storage is a data directory, opened as a daemon opens it.
type storage struct {
	catalogue *sqldb.DB
	store     snapshot.Store
	vault     *snapshot.Vault
}

func openStorage(ctx context.Context, in places) (_ *storage, err error) {
	s := &storage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.catalogue, err = sqldb.Open(ctx, sqldb.Options{Path: filepath.Join(in.Dir, "stasis.db"), Now: time.Now}); err != nil {
		return nil, err
	}
	store, err := in.open(ctx)
	if err != nil {
		return nil, err
	}
	s.store = store
	keys, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: in.Dir, InUse: func() (bool, error) {
		some, err := store.List(ctx, snapshot.ArchiveFolder(), 1, "")
		return len(some) > 0, err
	}})
	if err != nil {
		return nil, err
	}
	s.vault = snapshot.NewVault(s.store, keys, snapshot.Options{Now: time.Now})
	return s, nil
}

func (in places) open(ctx context.Context) (snapshot.Store, error) {
	b := in.Bucket
	if b == nil {
		return fsstore.Open(filepath.Join(in.Dir, "snapshots"), fsstore.Options{})
	}
	return s3store.Open(ctx, s3store.Options{Endpoint: b.Endpoint, Insecure: true, Bucket: b.Name, Prefix: b.Prefix, Region: b.Region,
		AccessKey: b.AccessKey, SecretKey: b.SecretKey, Spool: in.Dir, Now: time.Now})
}

// records returns what an audit compares the store with.
func (s *storage) records() *audit.Records {
	return &audit.Records{Sessions: s.catalogue.Sessions, Snapshots: s.catalogue.Snapshots, Defaults: s.catalogue.Defaults}
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
