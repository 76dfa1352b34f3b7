package inspect

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/browser/profile/internal/sqlite"
	"github.com/stasisd/stasis/state"
)

// A database counts as damaged only if its pages are. A table of another version of
// Chrome, with more or fewer columns, does not, nor does a database that would take too
// much memory: both are not counted, and stay for Chrome to open.
func TestUnknownFormats(t *testing.T) {
	const unknownFormat = "its format is unknown"
	for name, test := range map[string]struct {
		statements string
		want       state.Holding
	}{
		"more columns": {"CREATE TABLE logins (later, signon_realm, blacklisted_by_user, newest); INSERT INTO logins VALUES (1, 'https://a.example/', 0, 2)",
			state.Holding{Origin: "https://a.example/", Items: 1}},
		"fewer columns":       {"CREATE TABLE logins (signon_realm)", state.Holding{Uncounted: unknownFormat}},
		"another table":       {"CREATE TABLE passwords (signon_realm)", state.Holding{Uncounted: unknownFormat}},
		"a view in its place": {"CREATE VIEW logins AS SELECT 'x' AS signon_realm, 0 AS blacklisted_by_user", state.Holding{Uncounted: unknownFormat}},
		"a generated column": {"CREATE TABLE logins (blacklisted_by_user, signon_realm AS (zeroblob(1000000000)))",
			state.Holding{Uncounted: unknownFormat}},
		"a huge text": {"CREATE TABLE logins (signon_realm, blacklisted_by_user); INSERT INTO logins VALUES (CAST(zeroblob(40000000) AS TEXT), 0)",
			state.Holding{Uncounted: "it has a value of more than 4 MiB"}},
	} {
		dir := t.TempDir()
		db, err := sql.Open("sqlite", filepath.Join(dir, "Login Data"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), test.statements); err != nil {
			t.Fatal(name, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		check(t, name, dir, test.want)
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "Login Data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(sqlite.MaxFile + 1); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	check(t, "a huge file", dir, state.Holding{Uncounted: "it has more than 128 MiB"})
}

// Rows are bounded like bytes. Reading that many rows would take too long for a test.
func TestBudget(t *testing.T) {
	var b budget
	for range leveldb.MaxEntries {
		if err := b.take(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.take(0); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

// check reads the profile, which must have exactly one holding, of passwords.
func check(t *testing.T, name, dir string, want state.Holding) {
	t.Helper()
	p, err := Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want.Component = state.ComponentPasswords
	if len(p.Inventory) != 1 || p.Inventory[0] != want {
		t.Errorf("%s: got %+v, want %+v", name, p.Inventory, want)
	}
}
