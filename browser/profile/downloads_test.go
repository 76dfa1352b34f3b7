package profile_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/stasisd/stasis/browser/profile"
)

// Addresses and names of downloads stay, and none can be resumed. A history that would
// restore the paths, or cannot be read, is removed.
func TestPrepareDownloads(t *testing.T) {
	for _, c := range []struct {
		name, more string
		kept       bool
	}{
		{"as Chrome creates it", "", true},
		{"a trigger", "CREATE TRIGGER t AFTER UPDATE ON downloads BEGIN UPDATE downloads SET target_path = '/etc/passwd'; END", false},
		{"a view in its place", "ALTER TABLE downloads RENAME TO d; CREATE VIEW Downloads AS SELECT * FROM d", false},
		{"other columns", "ALTER TABLE downloads RENAME COLUMN target_path TO full_path", false},
		{"ignored conflicts", `DROP TABLE downloads; CREATE TABLE downloads (id INTEGER PRIMARY KEY, current_path, target_path TEXT UNIQUE ON CONFLICT IGNORE, state);
			INSERT INTO downloads VALUES (1, '/etc/passwd', '/tmp/a.txt', 4), (2, '/x', '/nonexistent/a.txt', 1)`, false},
		{"no downloads", "DROP TABLE downloads", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, "Default", "History")
			put(t, root, "Default/Preferences", "{}")
			db, err := sql.Open("sqlite", file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }() // closed below where it matters
			_, err = db.ExecContext(t.Context(), `CREATE TABLE downloads (id INTEGER PRIMARY KEY, current_path, target_path, state);
				INSERT INTO downloads VALUES (1, '/etc/passwd', '/tmp/a.txt', 4), (2, '/etc/shadow', '/etc/shadow', 1), (3, 'x', 'x', 0); `+c.more)
			if err = errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := (profile.Prepare{}).Run(t.Context(), root); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(file); (err == nil) != c.kept {
				t.Fatalf("the history: %v", err)
			}
			if !c.kept || c.more != "" {
				return
			}
			if db, err = sql.Open("sqlite", file); err != nil {
				t.Fatal(err)
			}
			var got string
			if err := db.QueryRowContext(t.Context(), "SELECT group_concat(current_path || ' ' || target_path || ' ' || state, ', ') FROM downloads").Scan(&got); err != nil {
				t.Fatal(err)
			}
			if want := "/nonexistent/a.txt /nonexistent/a.txt 2, /nonexistent/shadow /nonexistent/shadow 1, /nonexistent/x /nonexistent/x 2"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
