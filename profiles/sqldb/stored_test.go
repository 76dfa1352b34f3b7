package sqldb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// The migration counts what was stored before it.
func TestStoredBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		s := profiles.Session{ID: fmt.Sprint("s-", n), UserID: "ann", KeyID: fmt.Sprint("key ", n/2), Status: profiles.StatusReady, CreatedAt: noon}
		if err := db.Sessions.CreateSession(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Snapshots.Commit(t.Context(), profiles.Commit{Snapshot: profiles.Snapshot{ID: fmt.Sprint("p-", n), SessionID: s.ID, UserID: "ann", CreatedAt: noon, SizeBytes: n + 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, rawOpen(t, "sqlite", path), os.DirFS("migrations/sqlite"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.DownTo(t.Context(), 23); err != nil {
		t.Fatal(err)
	}
	db = open(t, path)
	if got, err := db.Snapshots.StoredByUser(t.Context(), "ann"); err != nil || got != (profiles.Stored{Snapshots: 3, Bytes: 6}) {
		t.Errorf("the user has stored %+v, %v", got, err)
	}
	if got, err := db.Snapshots.StoredByKey(t.Context(), "key 0"); err != nil || got != (profiles.Stored{Snapshots: 2, Bytes: 3}) {
		t.Errorf("the key has stored %+v, %v", got, err)
	}
}

// BenchmarkStored looks up what a user and a key have stored, as each create with quotas does,
// after 4,000 sessions of which 1,000 were saved.
func BenchmarkStored(b *testing.B) {
	ctx := b.Context()
	db, err := sqldb.Open(ctx, sqldb.Options{Path: filepath.Join(b.TempDir(), "catalogue.db"), Now: func() time.Time { return noon }})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for n := range 4000 {
		s := profiles.Session{ID: fmt.Sprint("s-", n), UserID: "ann", KeyID: "key", Status: profiles.StatusReady, CreatedAt: noon}
		if err := db.Sessions.CreateSession(ctx, s); err != nil {
			b.Fatal(err)
		}
		if n%4 > 0 {
			continue
		}
		if _, err := db.Snapshots.Commit(ctx, profiles.Commit{Snapshot: profiles.Snapshot{ID: fmt.Sprint("p-", n), SessionID: s.ID, UserID: "ann", CreatedAt: noon, SizeBytes: 10}}); err != nil {
			b.Fatal(err)
		}
	}
	for name, look := range map[string]func() (profiles.Stored, error){
		"user": func() (profiles.Stored, error) { return db.Snapshots.StoredByUser(ctx, "ann") },
		"key":  func() (profiles.Stored, error) { return db.Snapshots.StoredByKey(ctx, "key") },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got, err := look(); err != nil || got.Snapshots != 1000 || got.Bytes != 10000 {
					b.Fatalf("stored: %+v, %v", got, err)
				}
			}
		})
	}
}
