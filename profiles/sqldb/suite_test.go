package sqldb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/profiles/profilestest"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// server is the PostgreSQL server of these tests.
var server postgrestest.Shared

func TestMain(m *testing.M) {
	if commitForever() {
		return
	}
	goleak.VerifyTestMain(stopping{m})
}

// stopping runs all tests and stops the server.
type stopping struct{ *testing.M }

func (m stopping) Run() int {
	code := m.M.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var migrated sync.Once

// postgresURL returns the URL of a PostgreSQL database with the tables and without rows.
// All tests use the same one, one after the other: to create a database takes long.
func postgresURL(t *testing.T) string {
	t.Helper()
	const name = "shared"
	s := server.Server(t)
	migrated.Do(func() {
		if err := s.Exec(t.Context(), "postgres", "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		db, err := sqldb.Open(t.Context(), sqldb.Options{Path: s.URL(name), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
	var clear strings.Builder
	for _, table := range slices.Backward(sqldb.Tables()) {
		clear.WriteString("DELETE FROM " + table + ";")
	}
	if err := s.Exec(t.Context(), name, clear.String()); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
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
	return stores(open(t, path))
}

func stores(db *sqldb.DB) profilestest.Catalogue {
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

func TestPostgres(t *testing.T) {
	profilestest.Run(t, func(t *testing.T) profilestest.Catalogue { return catalogue(t, postgresURL(t)) })
}

// Every transaction can run twice: its results are those of the second time.
func TestRetried(t *testing.T) {
	profilestest.Run(t, func(t *testing.T) profilestest.Catalogue {
		url := postgresURL(t)
		db := open(t, url)
		if err := sqldb.FailFirstCommits(db, url); err != nil {
			t.Fatal(err)
		}
		return stores(db)
	})
}

func TestTwice(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		profilestest.RunTwice(t, func(t *testing.T) (one, other profilestest.Catalogue) {
			path := filepath.Join(t.TempDir(), "stasis.db")
			return catalogue(t, path), catalogue(t, path)
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		profilestest.RunTwice(t, func(t *testing.T) (one, other profilestest.Catalogue) {
			url := postgresURL(t)
			return catalogue(t, url), catalogue(t, url)
		})
	})
}
