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

// A database is called damaged only where its pages are: a table of another
// version of Chrome, with more columns or fewer, is not, and what would take too
// much memory is not counted either. None of it is lost: Chrome opens it as it is.
func TestDatabasesOfOtherForms(t *testing.T) {
	const strange = "it is in a form that is not known here"
	for name, test := range map[string]struct {
		statements string
		want       state.Holding
	}{
		"more columns": {"CREATE TABLE logins (later, signon_realm, blacklisted_by_user, newest); INSERT INTO logins VALUES (1, 'https://a.example/', 0, 2)",
			state.Holding{Origin: "https://a.example/", Items: 1}},
		"fewer columns":       {"CREATE TABLE logins (signon_realm)", state.Holding{Uncounted: strange}},
		"another table":       {"CREATE TABLE passwords (signon_realm)", state.Holding{Uncounted: strange}},
		"a view in its place": {"CREATE VIEW logins AS SELECT 'x' AS signon_realm, 0 AS blacklisted_by_user", state.Holding{Uncounted: strange}},
		"a generated column": {"CREATE TABLE logins (blacklisted_by_user, signon_realm AS (zeroblob(1000000000)))",
			state.Holding{Uncounted: strange}},
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

// Rows are bounded as bytes are. To read so many takes too long for a test.
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

// check reads the passwords of a profile, which must be this one holding.
func check(t *testing.T, name, dir string, want state.Holding) {
	t.Helper()
	p, err := Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want.Component = state.ComponentPasswords
	if len(p.Inventory) != 1 || p.Inventory[0] != want {
		t.Errorf("%s: %+v, not %+v", name, p.Inventory, want)
	}
}
