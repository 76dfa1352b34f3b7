package sqldb_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

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

// catalogue returns an open database in the form that the suite needs.
func catalogue(t *testing.T, path string) profilestest.Catalogue {
	t.Helper()
	db := open(t, path)
	return profilestest.Catalogue{
		Keys: db.Keys, Users: db.Users, Sessions: db.Sessions, Snapshots: db.Snapshots, Retention: db.Snapshots,
		Defaults: db.Defaults, Extensions: db.Extensions, Runs: db.Runs, Events: db.Runs, Messages: db.Messages,
		Notes: db.Notes, Deliveries: db.Deliveries, Receivers: db.Receivers, Answers: db.Answers, Audit: db.Audit, Database: db,
	}
}

func TestFile(t *testing.T) {
	profilestest.Run(t, func(t *testing.T) profilestest.Catalogue {
		return catalogue(t, filepath.Join(t.TempDir(), "stasis.db"))
	})
}

func TestMemory(t *testing.T) {
	profilestest.Run(t, func(t *testing.T) profilestest.Catalogue { return catalogue(t, sqldb.Memory) })
}
