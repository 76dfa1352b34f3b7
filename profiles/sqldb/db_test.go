package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

func openHere(t *testing.T) *DB {
	t.Helper()
	db, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "stasis.db"), Now: time.Now})
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

// A full database returns store_full, keeps its data, and works again when there is
// space.
func TestFull(t *testing.T) {
	ctx := t.Context()
	db := openHere(t)
	var err error
	pragma := func(statement string) {
		t.Helper()
		var n int
		if err := db.handle.writer.QueryRowContext(ctx, statement).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	session := func(i int) profiles.Session {
		return profiles.Session{ID: fmt.Sprint(i), UserID: "user", Goal: strings.Repeat("g", 4000), CreatedAt: time.Unix(1, 0)}
	}
	var pages int
	if err := db.handle.writer.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	pragma(fmt.Sprintf("PRAGMA max_page_count = %d", pages+10))
	made := 0
	for ; err == nil && made < 1000; made++ {
		err = db.Sessions.CreateSession(ctx, session(made))
	}
	made-- // the last one failed
	if !fault.Is(err, fault.StoreFull) {
		t.Fatalf("after %d sessions: %v", made, err)
	}
	all, _, err := db.Sessions.Sessions(ctx, profiles.SessionFilter{})
	if err != nil || len(all) != made {
		t.Errorf("%d of %d sessions are there: %v", len(all), made, err)
	}
	pragma("PRAGMA max_page_count = 1000000")
	if err := db.Sessions.CreateSession(ctx, session(made)); err != nil {
		t.Error(err)
	}
}

// The connections have the requested durability and strictness.
func TestPragmas(t *testing.T) {
	db := openHere(t)
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": busyTimeout,
	} {
		var w, r string
		if err := db.handle.writer.QueryRow("PRAGMA " + pragma).Scan(&w); err != nil {
			t.Fatal(err)
		}
		if err := db.handle.reader.QueryRow("PRAGMA " + pragma).Scan(&r); err != nil {
			t.Fatal(err)
		}
		if w != want || r != want {
			t.Errorf("%s: writer %s, reader %s, want %s", pragma, w, r, want)
		}
	}
	if _, err := db.handle.reader.Exec("DELETE FROM users"); err == nil {
		t.Error("a reader wrote")
	}
}

// A context that is cancelled after the last statement rolls back the transaction and is
// recognisable.
func TestCancelledBeforeCommit(t *testing.T) {
	db := openHere(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := db.handle.write(ctx, "test", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO users (user_id, created_at) VALUES (?, 1)", []byte("user"))
		cancel()
		for wait := error(nil); !errors.Is(wait, sql.ErrTxDone); {
			_, wait = tx.ExecContext(t.Context(), "SELECT 1")
		}
		return err
	})
	if !errors.Is(err, context.Canceled) || !fault.Is(err, fault.StoreFailed) {
		t.Errorf("got %v", err)
	}
	var users int
	if err := db.handle.reader.QueryRow("SELECT COUNT(*) FROM users").Scan(&users); err != nil || users != 0 {
		t.Errorf("%d users: %v", users, err)
	}
}
