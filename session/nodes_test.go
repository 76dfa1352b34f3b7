package session

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// server is the PostgreSQL server of the tests with several nodes.
var server postgrestest.Shared

// newNodes makes two Services that share a catalogue, a store and keys.
func newNodes(t *testing.T, change func(*Config)) (a, b *rig) {
	t.Helper()
	url := server.Database(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(0, time.Now)
	both := make([]*rig, 2)
	for i, id := range []string{"a", "b"} {
		root, err := os.MkdirTemp("", "u")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(root) })
		db, err := sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Node: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() }) // a database that ends with the test
		if _, err := db.Nodes.Join(t.Context(), profiles.Node{ID: id, URL: "http://" + id, StartedAt: time.Unix(1, 0)}); err != nil {
			t.Fatal(err)
		}
		watched := &watchedStore{Store: store}
		r := &rig{t: t, browsers: newFakeBrowsers(t, root+"/run"), store: faultstore.New(watched), watched: watched, node: db,
			catalogue: &brokenCatalogue{}, clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
			meter: &counter{}, disk: &disk{}, identity: identity, keys: snapshot.NewKeys(identity, [32]byte{1}), extensions: root + "/extensions"}
		r.catalogue.use(db)
		r.memoryAllows = func() bool { return true }
		r.Service = r.daemon(change)
		both[i] = r
	}
	return both[0], both[1]
}

// on_live holds for sessions of another node.
func TestOnLiveOfTwoNodes(t *testing.T) {
	a, b := newNodes(t, nil)
	a.saved(alice, asDefault)
	holder := a.create(alice, fromAlice).ID
	with := func(policy request.OnLive) request.Create {
		return newCreate(func(c *request.Create) { fromAlice(c); c.OnLive = policy })
	}
	_, err := b.Create(t.Context(), alice, with(request.OnLiveFail))
	wantCode(t, err, fault.EnvironmentInUse)
	_, err = b.Create(t.Context(), alice, with(request.OnLiveShare))
	wantCode(t, err, fault.EnvironmentInUse)
	var elsewhere *registry.Elsewhere
	if !errors.As(err, &elsewhere) || *elsewhere != (registry.Elsewhere{SessionID: holder, NodeID: "a"}) {
		t.Errorf("got %v, want an error that names node a", err)
	}
	fork := b.create(alice, func(c *request.Create) { fromAlice(c); c.OnLive = request.OnLiveFork })
	b.end(alice, fork.ID, none)

	made := make(chan error, 1)
	go func() {
		c := with(request.OnLiveWait)
		c.Wait = patience
		_, err := b.Create(context.WithoutCancel(t.Context()), alice, c)
		made <- err
	}()
	await(t, "the create of node b", func() bool { return len(made) > 0 || b.sessions.Counts().Creating > 0 })
	if len(made) > 0 {
		t.Fatalf("the create did not wait: %v", <-made)
	}
	a.end(alice, holder, none)
	if err := <-made; err != nil {
		t.Error(err)
	}
}

// A session's ID is taken on all nodes while it is created there, and its tickets work on the
// node that continues it.
func TestSessionMovesToAnotherNode(t *testing.T) {
	a, b := newNodes(t, nil)
	_, snap := a.saved(alice, asDefault)
	info := a.create(alice, fromAlice)
	_, err := b.resumes(t.Context(), alice, info.ID)
	if err == nil {
		t.Error("node b resumed a session that lives on node a")
	}
	ticket := info.Tickets[access.PurposeCDP]
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.resumes(t.Context(), alice, info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.AuthorizeTicket(t.Context(), ticket, info.ID, access.PurposeCDP); err != nil {
		t.Errorf("the ticket does not work on node b: %v", err)
	}
	// A session that was ended has other tickets when it is resumed.
	b.end(alice, info.ID, asDefault)
	if _, err := b.resumes(t.Context(), alice, info.ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.AuthorizeTicket(t.Context(), ticket, info.ID, access.PurposeCDP)
	wantCode(t, err, fault.Unauthorized)
	if _, err := b.catalogue.Snapshot(t.Context(), snap); err != nil {
		t.Error(err)
	}
}

// The quota of sessions counts those of all nodes, and no session that has ended.
func TestQuotaOfTwoNodes(t *testing.T) {
	one := int64(1)
	a, b := newNodes(t, func(c *Config) { c.Quotas.Sessions = &one })
	info := a.create(alice, nil)
	_, err := b.Create(t.Context(), alice, newCreate(nil))
	wantCode(t, err, fault.QuotaExceeded)
	b.create(bob, nil)
	made := make(chan answer.Info, 1)
	go func() {
		info, err := b.Create(context.WithoutCancel(t.Context()), alice, newCreate(func(c *request.Create) { c.Wait = patience }))
		if err != nil {
			t.Error(err)
		}
		made <- info
	}()
	a.end(alice, info.ID, none)
	info = <-made
	_, err = a.Create(t.Context(), alice, newCreate(nil))
	wantCode(t, err, fault.QuotaExceeded)
	b.end(alice, info.ID, none)
	a.create(alice, nil)
}
