package claims_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/snapshot"
)

var server postgrestest.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	if err := server.Stop(); err != nil {
		code = 1
	}
	os.Exit(code)
}

// shortLease is the lease time of these tests.
const shortLease = 200 * time.Millisecond

var migrated sync.Once

// database returns the URL of a database without rows. The tests use it one after the other:
// to create one takes long.
func database(t *testing.T) string {
	t.Helper()
	s := server.Server(t)
	migrated.Do(func() {
		if err := s.Exec(t.Context(), "postgres", "CREATE DATABASE shared"); err != nil {
			t.Fatal(err)
		}
		db, err := sqldb.Open(t.Context(), sqldb.Options{Path: s.URL("shared"), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
	clearRows(t)
	return s.URL("shared")
}

func clearRows(t *testing.T) {
	t.Helper()
	var clear strings.Builder
	for _, table := range []string{"archive_uses", "snapshot_holds", "session_claims", "check_claims", "tickets", "answers", "snapshots", "commits", "defaults", "sessions", "users", "nodes"} {
		clear.WriteString("DELETE FROM " + table + ";")
	}
	execute(t, clear.String())
}

// direct is a connection to the database without a catalogue, for all tests: to connect costs
// more than a test has its statements do.
var direct *pgx.Conn

// execute runs statements in the database.
func execute(t *testing.T, statements string, args ...any) {
	t.Helper()
	if direct == nil {
		var err error
		if direct, err = pgx.Connect(t.Context(), server.Server(t).URL("shared")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := direct.Exec(t.Context(), statements, args...); err != nil {
		t.Fatal(err)
	}
}

// node is a node of a test: a handle of the catalogue, and a vault on the shared store.
type node struct {
	*sqldb.DB
	t     *testing.T
	is    profiles.Node
	keys  snapshot.Keys
	dead  bool
	vault *snapshot.Vault
}

// nodes opens a catalogue once for each ID. Node n uses store(n, its claims).
func nodes(t *testing.T, store func(n int, uses snapshot.Uses) (snapshot.Store, snapshot.Uses), ids ...string) []*node {
	t.Helper()
	url := database(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var all []*node
	for n, id := range ids {
		db, err := sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Node: true, LeaseTime: shortLease})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		one := &node{DB: db, t: t, keys: snapshot.NewKeys(identity, [32]byte{1})}
		one.join(id)
		one.use(store, n)
		all = append(all, one)
	}
	return all
}

// use gives the node a vault on a store. nth is its number.
func (n *node) use(store func(n int, uses snapshot.Uses) (snapshot.Store, snapshot.Uses), nth int) {
	if store != nil {
		s, uses := store(nth, n.Claims)
		n.vault = snapshot.NewVault(s, n.keys, snapshot.Options{Now: time.Now, Uses: uses})
	}
}

// again removes all rows, and lets the nodes begin again with another store.
func again(t *testing.T, all []*node, store func(n int, uses snapshot.Uses) (snapshot.Store, snapshot.Uses)) {
	t.Helper()
	clearRows(t)
	for n, one := range all {
		one.join(one.is.ID)
		one.use(store, n)
	}
}

func (n *node) join(id string) {
	n.t.Helper()
	var err error
	n.dead = false
	if n.is, err = n.Nodes.Join(n.t.Context(), profiles.Node{ID: id, URL: "http://" + id, Facts: json.RawMessage("{}"), StartedAt: time.Unix(1, 0)}); err != nil {
		n.t.Fatal(err)
	}
}

// takeOver ends the lease of another node and takes it, unless it was taken over. To wait for the
// end would take most of the time of these tests. Only a server that has just started refuses.
func (n *node) takeOver(other *node) {
	n.t.Helper()
	if !other.dead {
		execute(n.t, "UPDATE nodes SET leased_until = 0 WHERE node_id = $1", other.is.ID)
	}
	for !other.dead {
		taken, err := n.Nodes.TakeOver(n.t.Context(), other.is.ID, other.is.Number)
		if err != nil {
			n.t.Fatal(err)
		}
		other.dead = taken
	}
}

func (n *node) claims() *claims.Claims {
	return claims.New(n.Claims, time.Millisecond, slog.New(slog.DiscardHandler))
}

var place = snapshot.Location{Owner: profiles.OwnerOf("ann"), Session: "s1", Scope: "agent", ScopeID: "browser"}

// session records the session of all snapshots of these tests.
func (n *node) session() {
	n.t.Helper()
	if err := n.Sessions.CreateSession(n.t.Context(), profiles.Session{ID: "s1", UserID: "ann", Status: profiles.StatusRunning, CreatedAt: time.Unix(2, 0)}); err != nil {
		n.t.Fatal(err)
	}
}

// save stores and commits a snapshot, as a save of a session does. After an error nothing of
// it needs the archive.
func (n *node) save(ctx context.Context, id, content string) error {
	saved, err := n.vault.Save(ctx, snapshot.Draft{ID: id, Location: place, Mode: snapshot.Filesystem, CreatedAt: time.Unix(3, 0),
		Entries: []snapshot.Entry{{Name: "a", Data: []byte(content), Mode: 0o600}}})
	if err != nil {
		return err
	}
	_, err = n.Snapshots.Commit(ctx, profiles.Commit{Snapshot: profiles.Snapshot{ID: id, SessionID: "s1", UserID: "ann", Mode: "filesystem",
		CreatedAt: time.Unix(3, 0), ArchiveID: saved.Archive.ID, SizeBytes: 1}})
	if err != nil {
		_ = n.vault.Delete(context.WithoutCancel(ctx), place, id, n.Snapshots.ArchiveInUse) // best effort, as in a session
		return err
	}
	n.vault.MarkCommitted(saved)
	return nil
}

// commit commits a snapshot without an archive in the store.
func (n *node) commit(id string) {
	n.t.Helper()
	if _, err := n.Claims.ReserveArchive(n.t.Context(), "x", id); err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.Snapshots.Commit(n.t.Context(), profiles.Commit{Snapshot: profiles.Snapshot{ID: id, SessionID: "s1", UserID: "ann", CreatedAt: time.Unix(3, 0), ArchiveID: "x"}}); err != nil {
		n.t.Fatal(err)
	}
}

// remove deletes a snapshot, as the API does.
func (n *node) remove(ctx context.Context, id string) error {
	if _, err := n.Snapshots.DeleteSnapshot(ctx, id); err != nil {
		return err
	}
	return n.vault.Delete(ctx, place, id, n.Snapshots.ArchiveInUse)
}

// intact checks that every committed snapshot can be restored, and returns how many there are.
func (n *node) intact() int {
	n.t.Helper()
	rows, _, err := n.Snapshots.Snapshots(n.t.Context(), profiles.SnapshotFilter{})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, row := range rows {
		s, err := n.vault.Open(n.t.Context(), place, row.ID)
		if err == nil {
			err = n.vault.Verify(n.t.Context(), s)
		}
		if err != nil {
			n.t.Errorf("snapshot %s is committed and cannot be restored: %v", row.ID, err)
		}
	}
	return len(rows)
}
