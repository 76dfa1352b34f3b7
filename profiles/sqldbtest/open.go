// Package sqldbtest gives tests an empty catalogue without the cost of its migrations.
package sqldbtest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles/sqldb"
)

// template returns the bytes of an empty catalogue. The migrations run once for each
// test binary: with the race detector they take a third of a second.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sqldbtest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "stasis.db")
	db, err := sqldb.Open(context.Background(), sqldb.Options{Path: path, Now: time.Now})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Open returns an empty catalogue in a file. now is its clock. The catalogue is closed when
// the test ends; an error of that fails the test.
func Open(t testing.TB, now func() time.Time) *sqldb.DB {
	t.Helper()
	empty, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "stasis.db")
	if err := os.WriteFile(path, empty, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
