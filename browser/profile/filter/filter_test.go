package filter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/profile/filter"
	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/browser/profile/internal/sqlite"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

var wanted = state.Selection{Include: []string{"https://a.example"}}

func databaseOf(t *testing.T, file, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err == nil {
		_, err = db.ExecContext(t.Context(), statements)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// Statistics and notes beside the logins name sites too. The database keeps the wanted
// rows of one table, its version, and no other byte.
func TestOtherTables(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "Login Data")
	databaseOf(t, file, `CREATE TABLE logins (origin_url, signon_realm); CREATE TABLE stats (origin); CREATE TABLE "a ""note""" (text); CREATE TABLE meta (key, value);
		INSERT INTO logins VALUES ('https://a.example/', 'https://a.example/'), ('https://leftout.example/', 'https://leftout.example/');
		INSERT INTO stats VALUES ('https://leftout.example/'); INSERT INTO "a ""note""" VALUES ('of leftout.example'); INSERT INTO meta VALUES ('version', 'kept')`)
	lost, err := filter.Run(t.Context(), dir, nil, nil, wanted)
	if err != nil || len(lost) != 0 {
		t.Fatalf("%+v, %v", lost, err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text, there := range map[string]bool{"leftout": false, "https://a.example/": true, "kept": true} {
		if strings.Contains(string(body), text) != there {
			t.Errorf("%s in the file: %t", text, !there)
		}
	}
}

// A database over the limits is removed as a whole and reported, so that nothing unwanted
// stays.
func TestOverLimits(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		make func(t *testing.T, dir, file string)
		says string
	}{
		"a large file": {"Cookies", func(t *testing.T, _, file string) {
			if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, sqlite.MaxFile+1)); err != nil {
				t.Fatal(err)
			}
		}, "more than 128 MiB"},
		"a large value": {"Login Data", func(t *testing.T, _, file string) {
			databaseOf(t, file, "CREATE TABLE logins (origin_url, signon_realm); INSERT INTO logins VALUES (CAST(zeroblob(5000000) AS TEXT), '')")
		}, "a value of more than"},
		"many entries": {"Local Storage/leveldb", func(t *testing.T, dir, file string) {
			entries := map[string][]byte{}
			for i := range leveldb.MaxEntries + 1 {
				entries[fmt.Sprint("_https://b.example\x00\x01", i)] = nil
			}
			root, err := os.OpenRoot(dir)
			if err == nil {
				err = errors.Join(os.Mkdir(filepath.Dir(file), 0o700), leveldb.Write(root, "Local Storage/leveldb", entries), root.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "more than 200000 entries"},
		"large settings": {"Preferences", func(t *testing.T, _, file string) {
			if err := errors.Join(os.WriteFile(file, []byte("{}"), 0o600), os.Truncate(file, 9<<20)); err != nil {
				t.Fatal(err)
			}
		}, "at most 8 MiB"},
		"settings elsewhere": {"Preferences", func(t *testing.T, _, file string) {
			if err := os.Symlink("/dev/zero", file); err != nil {
				t.Fatal(err)
			}
		}, "not a plain file"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, filepath.FromSlash(test.file))
		test.make(t, dir, file)
		lost, err := filter.Run(t.Context(), dir, nil, nil, wanted)
		if err != nil || len(lost) != 1 || lost[0].Reason.Code != report.LeftOut ||
			!strings.Contains(lost[0].Reason.Text, test.file) || !strings.Contains(lost[0].Reason.Text, test.says) {
			t.Errorf("%s: %+v, %v", name, lost, err)
		}
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the file was not removed: %v", name, err)
		}
	}
}

// A canceled context ends the filtering.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := filter.Run(ctx, t.TempDir(), nil, nil, wanted); !fault.Is(err, fault.Timeout) {
		t.Error(err)
	}
}
