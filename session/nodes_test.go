package session

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/undo"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// server is the PostgreSQL server of the tests with several nodes.
var server postgrestest.Shared

// nodesRig is what several nodes share: a catalogue, a store and keys.
type nodesRig struct {
	t        *testing.T
	url      string
	identity *age.X25519Identity
	store    *memstore.Store
}

func newNodesRig(t *testing.T) *nodesRig {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return &nodesRig{t, server.Database(t), identity, memstore.New(0, time.Now)}
}

// node makes the Service of a node. Nothing renews its lease: it counts until it is taken over.
func (n *nodesRig) node(id string, change func(*Config)) *rig {
	t := n.t
	t.Helper()
	root, err := os.MkdirTemp("", "u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: n.url, Now: time.Now, Node: true, LeaseTime: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // a database that ends with the test
	watched := &watchedStore{Store: n.store}
	r := &rig{t: t, browsers: newFakeBrowsers(t, root+"/run"), store: faultstore.New(watched), watched: watched, node: db, nodeID: id,
		catalogue: &brokenCatalogue{}, clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		meter: &counter{}, disk: &disk{}, identity: n.identity, keys: snapshot.NewKeys(n.identity, [32]byte{1}), extensions: root + "/extensions"}
	r.join()
	r.catalogue.use(db)
	r.memoryAllows = func() bool { return true }
	r.Service = r.daemon(change)
	r.nodeSessions = Nodes(r.Service, struct {
		*sqldb.Nodes
		*sqldb.Left
	}{db.Nodes, db.Left}, nil)
	return r
}

// newNodes makes two nodes.
func newNodes(t *testing.T, change func(*Config)) (a, b *rig) {
	t.Helper()
	n := newNodesRig(t)
	return n.node("a", change), n.node("b", change)
}

// join takes a lease for the rig's node.
func (r *rig) join() {
	r.t.Helper()
	if _, err := r.node.Nodes.Join(r.t.Context(), profiles.Node{ID: r.nodeID, URL: "http://" + r.nodeID, StartedAt: time.Unix(1, 0)}); err != nil {
		r.t.Fatal(err)
	}
}

// rejoin lets a node that was taken over do what its keeper does.
func (r *rig) rejoin() {
	r.t.Helper()
	r.nodeSessions.Lose(r.t.Context())
	r.join()
	r.nodeSessions.Regain(r.t.Context())
	await(r.t, "what the node has is saved", func() bool { return r.Counts().Rescuing == 0 })
}

// takeOver takes another node over, and ends its sessions.
func (r *rig) takeOver(other *rig) {
	r.t.Helper()
	all, err := r.node.Nodes.Nodes(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(n profiles.Node) bool { return n.ID == other.nodeID })
	await(r.t, "the lease has ended", func() bool {
		taken, err := r.node.Nodes.TakeOver(r.t.Context(), other.nodeID, all[at].Number)
		if err != nil {
			r.t.Fatal(err)
		}
		return taken
	})
	stranded, err := r.node.Nodes.Stranded(r.t.Context())
	if err == nil {
		err = r.nodeSessions.TakeOver(r.t.Context(), stranded)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// member is the Node of a rig. Its lease is that in the catalogue.
type member string

func (m member) ID() string { return string(m) }
func (member) Check() error { return nil }
func (member) Leads() bool  { return true }
func (member) Changed()     {}

// A daemon with the ID of a node that has lost its lease does not have that one's data. It ends
// the sessions, and the node saves what they had when it is back.
func TestDataOfADaemonWithTheSameID(t *testing.T) {
	nodes := newNodesRig(t)
	a := nodes.node("a", nil)
	id := a.create(alice, nil).ID
	other := nodes.node("a", nil)
	if err := recovered(t.Context(), other.Service); err != nil {
		t.Fatal(err)
	}
	rec, err := other.catalogue.Session(t.Context(), id)
	if err != nil || rec.Reason.Code != profiles.ReasonNodeLost || rec.EndedAt.IsZero() {
		t.Fatalf("the session: ended %v, reason %+v, %v", rec.EndedAt, rec.Reason, err)
	}
	if err := other.rescues.Register(t.Context(), nil); err != nil { // it starts again
		t.Fatal(err)
	}
	a.rejoin()
	snap, err := a.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || !snap.Rescue {
		t.Errorf("what node a had was not saved: %+v, %v", snap, err)
	}
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

// A session with restart: on_crash whose node died is started again by another one, and says so. One
// that a caller resumes does not. Both say on which node they live, until they end.
func TestRestartAfterTheNodeWasLost(t *testing.T) {
	a, b := newNodes(t, nil)
	id := a.create(alice, func(c *request.Create) { c.Restart = true }).ID
	other := a.create(alice, nil).ID
	for _, id := range []string{id, other} {
		if _, err := a.Checkpoint(t.Context(), alice, id, request.Checkpoint{}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := a.Get(t.Context(), alice, id); err != nil || info.BrowserRestarted || info.NodeID != "a" {
		t.Errorf("at first: restarted %t, on %q, %v", info.BrowserRestarted, info.NodeID, err)
	}
	b.takeOver(a)
	if err := b.nodeSessions.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := b.Get(t.Context(), alice, id); err != nil || info.Status != profiles.StatusReady || !info.BrowserRestarted || info.NodeID != "b" {
		t.Errorf("started again: %s, restarted %t, on %q, %v", info.Status, info.BrowserRestarted, info.NodeID, err)
	}
	if info, err := b.Get(t.Context(), alice, other); err != nil || info.Answer().NodeID != nil {
		t.Errorf("ended: it lives on %v, %v", info.Answer().NodeID, err)
	}
	if _, err := b.resumes(t.Context(), alice, other); err != nil {
		t.Fatal(err)
	}
	if info, err := b.Get(t.Context(), alice, other); err != nil || info.BrowserRestarted || info.NodeID != "b" {
		t.Errorf("resumed: restarted %t, on %q, %v", info.BrowserRestarted, info.NodeID, err)
	}
	a.rejoin()
}

// The quota of sessions counts those of all nodes, and no session that has ended.
func TestQuotaOfTwoNodes(t *testing.T) {
	one := int64(1)
	a, b := newNodes(t, func(c *Config) { c.Quotas.Sessions = &one })
	info := a.create(alice, nil)
	_, err := b.Create(t.Context(), alice, newCreate(nil))
	wantCode(t, err, fault.QuotaExceeded)
	b.create(bob, nil)
	_, err = b.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.Wait = time.Hour }).Placed(0))
	wantCode(t, err, fault.QuotaExceeded)
	a.end(alice, info.ID, none)
	info = b.create(alice, nil)
	_, err = a.Create(t.Context(), alice, newCreate(nil))
	wantCode(t, err, fault.QuotaExceeded)
	b.end(alice, info.ID, none)
	a.create(alice, nil)
}

// A create that is under way when its node loses the lease makes no session, also if it is as far
// as its record: its claims are void, and another node may have made a session of the environment.
func TestCreatesEndWithTheLease(t *testing.T) {
	for name, at := range map[string]func(a *rig, do func()){
		"before its record": func(a *rig, do func()) {
			a.browsers.on("restored", func(*fakeChrome) error { do(); return nil })
		},
		"after its record": func(a *rig, do func()) { a.catalogue.once("CreateSession", do) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newNodes(t, nil)
			a.saved(alice, asDefault)
			create := func(c *request.Create) { fromAlice(c); c.OnLive, c.Persist = request.OnLiveFail, true }
			joined := make(chan struct{})
			at(a, func() {
				b.takeOver(a)
				go func() {
					defer close(joined)
					a.rejoin()
				}()
				await(t, "node a loses its creates", func() bool {
					_, leave, err := a.creates.enter(t.Context())
					if err == nil {
						leave()
					}
					return err != nil
				})
				select {
				case <-joined:
					t.Error("node a joined during a create")
				default:
				}
			})
			id := profiles.NewID()
			_, err := a.Create(t.Context(), alice, newCreate(func(c *request.Create) { create(c); c.SessionID = id }))
			wantCode(t, err, fault.NodeLost)
			<-joined
			if n := a.Counts().Live; n != 0 {
				t.Errorf("%d sessions live on node a", n)
			}
			if name == "after its record" {
				if snap, err := b.catalogue.NewestSnapshot(t.Context(), id); err != nil || !snap.Rescue {
					t.Errorf("what the session had was not saved: %+v, %v", snap, err)
				}
			}
			b.create(alice, create)
			a.browsers.works()
			_, err = a.Create(t.Context(), alice, newCreate(create))
			wantCode(t, err, fault.EnvironmentInUse)
		})
	}
}

// A claim that a lost lease has made void is not used.
func TestVoidClaims(t *testing.T) {
	a, b := newNodes(t, nil)
	c := a.deps.Claims
	if err := c.Claim(t.Context(), alice.KeyID, "s1"); err != nil {
		t.Fatal(err)
	}
	b.takeOver(a)
	a.join()
	_, err := c.Enter(t.Context(), "s1", restore.Environment{UserID: "alice", Source: &restore.Source{}, Snapshot: &profiles.Snapshot{}}, true)
	wantCode(t, err, fault.NodeLost)
	wantCode(t, c.Count(t.Context(), "s1", profiles.QuotaCount{UserID: "alice", KeyID: alice.KeyID}, func(profiles.QuotaUse) error { return nil }), fault.NodeLost)
}

// A save of a discarded session ends with the lease. What is kept is not saved after another node
// has resumed the session.
func TestUndoEndsWithTheLease(t *testing.T) {
	a, b := newNodes(t, func(c *Config) { c.Undo = undo.Limits{Window: time.Hour, Count: 2, Bytes: 1 << 30} })
	discarded := func() (id, checkpoint string) {
		t.Helper()
		id = a.create(alice, nil).ID
		checkpoint = a.checkpoint(id, plain).Snapshot.ID
		a.rewrite(a.browsers.last(), "changed")
		a.discarded(id)
		return id, checkpoint
	}
	newest := func(id string) string {
		t.Helper()
		snap, err := b.catalogue.NewestSnapshot(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return snap.ID
	}
	// A resume saves it, and then has the claim of the session.
	id, _ := discarded()
	if _, err := a.resumes(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	wantCode(t, b.deps.Claims.Claim(t.Context(), alice.KeyID, id), fault.RequestInProgress)
	a.end(alice, id, none)

	id, checkpoint := discarded()
	joined := make(chan struct{})
	a.catalogue.once("Commit", func() {
		b.takeOver(a)
		go func() {
			defer close(joined)
			a.rejoin()
		}()
		await(t, "node b resumes the session", func() bool {
			_, err := b.resumes(t.Context(), alice, id)
			return err == nil
		})
	})
	_, err := a.End(t.Context(), alice, id, filesystem)
	if err == nil {
		t.Error("it was saved")
	}
	<-joined
	if rec, err := b.catalogue.Session(t.Context(), id); err != nil || !rec.EndedAt.IsZero() || newest(id) != checkpoint {
		t.Errorf("the session on node b: ended %v, newest snapshot %s, %v; want %s", rec.EndedAt, newest(id), err, checkpoint)
	}
	last := b.end(alice, id, filesystem).Snapshot.ID
	if _, err := a.resumes(t.Context(), alice, id); err != nil || newest(id) != last {
		t.Errorf("resumed: %v, newest snapshot %s, want %s", err, newest(id), last)
	}
}

// A checkpoint that runs while its node loses the session has an answer.
func TestCheckpointOfALostSession(t *testing.T) {
	a, b := newNodes(t, nil)
	id := a.create(alice, nil).ID
	copying, proceed := make(chan struct{}), make(chan struct{})
	a.browsers.on("copy", func(*fakeChrome) error {
		copying <- struct{}{}
		<-proceed
		return nil
	})
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := a.Checkpoint(ctx, alice, id, plain)
		result <- err
	}()
	<-copying
	b.takeOver(a)
	back := make(chan struct{})
	go func() { defer close(back); a.rejoin() }()
	l := a.sessions.Find(id)
	<-l.ctx.Done()
	close(proceed)
	wantCode(t, <-result, fault.NodeLost)
	<-back
}
