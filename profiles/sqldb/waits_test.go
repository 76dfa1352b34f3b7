package sqldb_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// Commits of different sessions and users, with one key, do not wait for each other: one ends
// while another has its number and is not committed.
func TestCommitsDoNotWait(t *testing.T) {
	address := postgresURL(t)
	one, other := open(t, address), open(t, address)
	ctx := t.Context()
	commit := func(id string) profiles.Commit {
		s := profiles.Session{ID: id, UserID: "user " + id, KeyID: "key", Status: profiles.StatusReady, CreatedAt: noon}
		if err := one.Sessions.CreateSession(ctx, s); err != nil {
			t.Fatal(err)
		}
		return profiles.Commit{Snapshot: profiles.Snapshot{ID: "snap " + id, SessionID: id, UserID: s.UserID, CreatedAt: noon, SizeBytes: 1}, Move: &profiles.Move{}}
	}
	first, second := commit("a"), commit("b") // whose parts of what the key has stored differ, see migration 30
	attempts := 0
	first.Notices = func(profiles.Session) []profiles.Notice {
		if attempts++; attempts == 1 {
			if _, err := other.Snapshots.Commit(ctx, second); err != nil {
				t.Errorf("the second commit: %v", err)
			}
		}
		return nil
	}
	if _, err := one.Snapshots.Commit(ctx, first); err != nil {
		t.Fatal(err)
	}
	if stored, err := one.Snapshots.StoredByKey(ctx, "key"); err != nil || stored != (profiles.Stored{Snapshots: 2, Bytes: 2}) {
		t.Errorf("the key has stored %+v, %v", stored, err)
	}
	if attempts != 1 {
		t.Errorf("the first commit was tried %d times", attempts)
	}
}

// The URL can have the size of the pool.
func TestPoolSize(t *testing.T) {
	address := postgresURL(t)
	fill(t, open(t, address+"&pool_max_conns=3"))
	for _, size := range []string{"2", "-1", "many"} {
		if err := sqldb.CheckURL(address + "&pool_max_conns=" + size); err == nil || !strings.Contains(err.Error(), "at least 3") {
			t.Errorf("pool_max_conns=%s: %v", size, err)
		}
	}
	_, err := sqldb.Open(t.Context(), sqldb.Options{Path: address + "&pool_max_conns=0", Now: time.Now})
	if !fault.Is(err, fault.Config) {
		t.Errorf("got %v", err)
	}
}
