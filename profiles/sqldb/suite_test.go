package sqldb_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/profilestest"
	"github.com/stasisd/stasis/profiles/sqldb"
)

func TestMain(m *testing.M) {
	if commitForever() {
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, path string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: time.Now})
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

func TestFile(t *testing.T) {
	profilestest.Run(t, func(t *testing.T) profiles.Catalogue { return open(t, filepath.Join(t.TempDir(), "stasis.db")) })
}

func TestMemory(t *testing.T) {
	profilestest.Run(t, func(t *testing.T) profiles.Catalogue { return open(t, sqldb.Memory) })
}
