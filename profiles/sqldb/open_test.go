package sqldb_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 123_456_789, time.UTC)

func fill(t *testing.T, db *sqldb.DB) profiles.Session {
	t.Helper()
	s := profiles.Session{ID: "s", UserID: "user", Status: profiles.StatusReady, CreatedAt: noon, Labels: map[string]string{"a": "b"}}
	if err := db.Sessions.CreateSession(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	_, err := db.Snapshots.Commit(t.Context(), profiles.Commit{
		Snapshot: profiles.Snapshot{ID: "snap", SessionID: "s", UserID: "user", CreatedAt: noon}, Move: &profiles.Move{},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.BaseVersion = 1
	return s
}

// All records are there when the file is opened again, also while another process has it
// open. No other user of the machine can read it.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?mode=memory&%41#b.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	want := fill(t, db)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%q has mode %v", suffix, info.Mode())
		}
	}
	check := func(db *sqldb.DB) {
		t.Helper()
		got, err := db.Sessions.Session(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		d, err := db.Defaults.Default(t.Context(), "user")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(profiles.Default{UserID: "user", Version: 1, SnapshotID: "snap", SessionID: "s", MovedAt: noon}, d); diff != "" {
			t.Error(diff)
		}
	}
	check(open(t, path))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	check(open(t, path))
}

// A read-only catalogue shows the current data, even while a daemon has it open, and the
// file does not change.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stasis.db")
	readOnly := sqldb.Options{Path: path, Now: time.Now, ReadOnly: true}
	if _, err := sqldb.Open(t.Context(), readOnly); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("where there is none: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was created: %v", err)
	}
	daemon, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, daemon)
	check := func(when string) {
		t.Helper()
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		db, err := sqldb.Open(t.Context(), readOnly)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if _, err := db.Sessions.Session(t.Context(), "s"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if err := db.Keys.CreateKey(t.Context(), profiles.Key{ID: "k"}); !fault.Is(err, fault.StoreFailed) {
			t.Errorf("%s: a write: %v", when, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed: %v", when, err)
		}
	}
	check("beside a daemon")
	if err := daemon.Close(); err != nil {
		t.Fatal(err)
	}
	check("without one")
	raw(t, path, "DELETE FROM goose_db_version WHERE version_id > 1")
	if _, err := sqldb.Open(t.Context(), readOnly); !fault.Is(err, fault.Config) || !strings.Contains(fault.MessageOf(err), "to update the catalogue") {
		t.Errorf("written by an older Stasis: %v", err)
	}
}

func TestOpenFails(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made.db")
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: made, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		k := profiles.Key{ID: fmt.Sprint(i), Name: strings.Repeat("n", 200), Hash: [32]byte{byte(i)}, CreatedAt: noon}
		if err := db.Keys.CreateKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	valid, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	scribbled := bytes.Clone(valid)
	for i := 100; i < len(scribbled); i++ { // all but the header
		scribbled[i] = 0xa5
	}
	for _, test := range []struct {
		name    string
		data    []byte
		message string
	}{
		{"not a database", bytes.Repeat([]byte("text "), 2000), "not a database"},
		{"truncated", valid[:len(valid)/2], "damaged"},
		{"scribbled over", scribbled, "damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "stasis.db")
			if err := os.WriteFile(path, test.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: time.Now})
			if !fault.Is(err, fault.StoreFailed) || !strings.Contains(fault.MessageOf(err), test.message) {
				t.Errorf("got %v", err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, test.data) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	t.Run("no clock", func(t *testing.T) {
		if _, err := sqldb.Open(t.Context(), sqldb.Options{Path: sqldb.Memory}); !fault.Is(err, fault.Config) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no such folder", func(t *testing.T) {
		_, err := sqldb.Open(t.Context(), sqldb.Options{Path: filepath.Join(t.TempDir(), "none", "stasis.db"), Now: time.Now})
		if !fault.Is(err, fault.StoreFailed) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

// A database of a newer Stasis is not changed.
func TestNewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stasis.db")
	fill(t, open(t, path))
	raw(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9001, 1)")
	_, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: time.Now})
	if !fault.Is(err, fault.Config) || !strings.Contains(fault.MessageOf(err), "9001") {
		t.Errorf("got %v", err)
	}
}

// raw runs a statement on the file, without the package.
func raw(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(statement)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// rawOpen opens a database without the package, until the test ends.
func rawOpen(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
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

// A catalogue of the first release is migrated with all its data.
func TestOldCatalogue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, old, os.DirFS("migrations/sqlite"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Exec("INSERT INTO users (user_id, created_at) VALUES (?, ?)", []byte("ada"), noon.UnixNano()); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, path).Users.User(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(profiles.User{ID: "ada", CreatedAt: noon}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Reasons stored as text alone get the codes by which that text was interpreted. These
// texts never change.
func TestReasonsWithoutCodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	old, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, old, os.DirFS("migrations/sqlite"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 14); err != nil {
		t.Fatal(err)
	}
	texts := map[string]profiles.ReasonCode{
		"":               "",
		"idle_timeout":   profiles.ReasonIdle,
		"max_lifetime":   profiles.ReasonLifetime,
		"shutdown":       profiles.ReasonShutdown,
		"imported":       profiles.ReasonImported,
		"login_check":    profiles.ReasonLoginCheck,
		"Chrome crashed": profiles.ReasonCrashed,
		"Chrome crashed, after 3 restarts within 10 minutes":                                               profiles.ReasonCrashLoop,
		"Chrome crashed, and could not be started again: the browser failed":                               profiles.ReasonNotRestarted,
		"Chrome crashed, and what it left could not be saved; it is kept, resume the session to try again": profiles.ReasonCrashKept,
		"a save failed and Chrome could not be reopened; the data is kept":                                 profiles.ReasonSaveFailed,
		"the daemon is shutting down":                                                                      profiles.ReasonShutdown,
		"the daemon was killed":                                                                            profiles.ReasonKilled,
		"the daemon was killed; nothing could be rescued":                                                  profiles.ReasonNotRescued,
		"the daemon was killed; what the session left is being rescued":                                    profiles.ReasonBeingRescued,
		"something else": profiles.ReasonOther,
	}
	for text := range texts {
		if _, err := old.Exec("INSERT INTO sessions (session_id, user_id, key_id, agent_name, goal, engine, status, execution, reason, created_at, expires_at, ended_at, labels, "+
			"request_hash, base_snapshot_id, base_version, run_dir, discard, webhook_url) VALUES (?, ?, '', '', '', '', 'terminated', '', ?, 1, 1, 1, '{}', '', '', 0, '', 0, '')", text, []byte("ada"), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	db := open(t, path)
	for text, code := range texts {
		got, err := db.Sessions.Session(t.Context(), text)
		if err != nil || got.Reason != code.With(text) {
			t.Errorf("%q: %+v, %v", text, got.Reason, err)
		}
		if killed := strings.HasPrefix(text, "the daemon was killed"); got.Reason.Code.Killed() != killed {
			t.Errorf("%q: killed is %t", text, !killed)
		}
	}
}
