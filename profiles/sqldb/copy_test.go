package sqldb_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// A copy includes the log, while another process has the catalogue open.
func TestCopyTo(t *testing.T) {
	dir := t.TempDir()
	open := func(path string, readOnly bool) *sqldb.DB {
		t.Helper()
		db, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: time.Now, ReadOnly: readOnly})
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
	path, target := filepath.Join(dir, "stasis.db"), filepath.Join(dir, "copy.db")
	if err := open(path, false).Sessions.CreateSession(t.Context(), profiles.Session{ID: "s-1", UserID: "ada", Status: profiles.StatusReady, CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		t.Fatalf("the log is empty: %v", err)
	}
	beside := open(path, true)
	if err := beside.CopyTo(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info.Mode(), err)
	}
	if _, err := open(target, true).Sessions.Session(t.Context(), "s-1"); err != nil {
		t.Errorf("the copy lacks the last write: %v", err)
	}
	if err := beside.CopyTo(t.Context(), target); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("an existing file was overwritten: %v", err)
	}
}
