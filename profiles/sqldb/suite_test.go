package sqldb_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/profiles/profilestest"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/profiles/sqldbtest"
)

// server is the PostgreSQL server of these tests.
var server postgrestest.Shared

func TestMain(m *testing.M) {
	if commitForever() {
		return
	}
	goleak.VerifyTestMain(server.Stopping(m))
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
	db := open(t, s.URL(name))
	if err := errors.Join(sqldb.Clear(t.Context(), db), db.Close()); err != nil {
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
		Defaults: db.Defaults, Extensions: db.Extensions, Packed: db.Extensions, Runs: db.Runs, Events: db.Runs, Messages: db.Messages,
		Notes: db.Notes, Deliveries: db.Deliveries, Receivers: db.Receivers, Answers: db.Answers, Audit: db.Audit, Database: db,
	}
}

func TestFile(t *testing.T) {
	profilestest.Run(t, func(t *testing.T) profilestest.Catalogue {
		return stores(sqldbtest.Open(t, time.Now))
	})
}

func TestMemory(t *testing.T) {
	profilestest.Run(t, func(t *testing.T) profilestest.Catalogue { return catalogue(t, sqldb.Memory) })
}

func TestPostgres(t *testing.T) {
	next := reused(t, func(url string) *sqldb.DB { return open(t, url) })
	profilestest.Run(t, func(t *testing.T) profilestest.Catalogue { return stores(next(t)) })
}

// Every transaction can run twice: its results are those of the second time.
func TestRetried(t *testing.T) {
	next := reused(t, func(url string) *sqldb.DB {
		db := open(t, url)
		if err := sqldb.FailFirstCommits(db, url); err != nil {
			t.Fatal(err)
		}
		return db
	})
	profilestest.Run(t, func(t *testing.T) profilestest.Catalogue { return stores(next(t)) })
}

// reused returns a function that returns the same catalogue for each test, without rows: to
// connect costs more than most tests. One that a test has closed is opened again. open closes
// it when all tests have ended.
func reused(t *testing.T, open func(url string) *sqldb.DB) func(*testing.T) *sqldb.DB {
	t.Helper()
	url := postgresURL(t)
	db := open(url)
	return func(t *testing.T) *sqldb.DB {
		t.Helper()
		if db.Health(t.Context()) != nil {
			db = open(url)
		}
		if err := sqldb.Clear(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		return db
	}
}

func TestTwice(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		profilestest.RunTwice(t, func(t *testing.T) (one, other profilestest.Catalogue) {
			path := filepath.Join(t.TempDir(), "stasis.db")
			return catalogue(t, path), catalogue(t, path)
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		again := func(url string) *sqldb.DB { return open(t, url) }
		first, second := reused(t, again), reused(t, again)
		profilestest.RunTwice(t, func(t *testing.T) (one, other profilestest.Catalogue) {
			return stores(first(t)), stores(second(t))
		})
	})
}
