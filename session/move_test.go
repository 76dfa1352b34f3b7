package session

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
)

// takeoverRecords are what a node needs to take sessions over.
type takeoverRecords struct {
	*sqldb.Nodes
	*sqldb.Left
}

// others are the nodes to which a test moves sessions.
type others struct {
	ids   []string
	take  func(ctx context.Context, nodeID, sessionID string) error
	files func(ctx context.Context, nodeID, sessionID string) (io.ReadCloser, error)
}

func (o *others) For(context.Context, string, string) ([]string, error) { return o.ids, nil }
func (o *others) Take(ctx context.Context, nodeID, sessionID string) error {
	return o.take(ctx, nodeID, sessionID)
}

func (o *others) Files(ctx context.Context, nodeID, sessionID string) (io.ReadCloser, error) {
	return o.files(ctx, nodeID, sessionID)
}

// given are the files of a session on a node, as another one reads them.
func given(ctx context.Context, by *NodeSessions, id string) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(by.Give(ctx, id, w)) }()
	return r
}

// twoNodes returns two nodes. The sessions of a can move to b.
func twoNodes(t *testing.T, change func(*Config)) (a, b *rig, drained, other *NodeSessions, to *others) {
	t.Helper()
	a, b = newNodes(t, change)
	to = &others{ids: []string{"b"}, take: func(ctx context.Context, _, id string) error { return other.Take(ctx, id) },
		files: func(ctx context.Context, _, id string) (io.ReadCloser, error) { return given(ctx, drained, id), nil }}
	other = Nodes(b.Service, takeoverRecords{b.node.Nodes, b.node.Left}, to)
	return a, b, Nodes(a.Service, takeoverRecords{a.node.Nodes, a.node.Left}, to), other, to
}

// A session of a node that is drained continues on another one, with its options, its lifetime and
// its tickets. Clients are closed so that they connect again.
func TestMove(t *testing.T) {
	one := int64(1)
	a, b, drained, _, _ := twoNodes(t, func(c *Config) { c.Quotas.Sessions, c.Quotas.Snapshots = &one, &one })
	info := a.create(alice, func(c *request.Create) {
		c.Labels, c.Lifetime, c.Persist = map[string]string{"team": "dev"}, time.Hour, true
	})
	viewer := newViewer()
	viewed := make(chan error, 1)
	go func() { viewed <- a.View(context.Background(), alice, info.ID, viewer) }()
	<-viewer.said
	paused := a.create(bob, nil)
	if _, err := a.Pause(t.Context(), bob, paused.ID); err != nil {
		t.Fatal(err)
	}
	first := a.browsers.all()[0]
	a.clock.add(10 * time.Minute)
	b.clock.add(10 * time.Minute)

	drained.Move(t.Context())
	if code := <-viewer.closed; code != mux.CloseRestarting || first.code != mux.CloseRestarting {
		t.Errorf("the viewer was closed with %d, the clients with %d", code, first.code)
	}
	if err := <-viewed; err != nil {
		t.Error(err)
	}
	if n := a.Counts().Live; n != 0 || len(drained.Status().Staying) != 0 {
		t.Errorf("%d sessions live on the drained node: %+v", n, drained.Status().Staying)
	}
	now, err := b.Get(t.Context(), alice, info.ID)
	if err != nil || now.Status != profiles.StatusReady || now.Labels["team"] != "dev" || now.NodeID != "b" {
		t.Fatalf("on the other node: %+v, %v", now, err)
	}
	if late := now.ExpiresAt.Sub(info.ExpiresAt).Abs(); late > time.Second {
		t.Errorf("it expires at %s, %s from before", now.ExpiresAt, late)
	}
	if _, err := b.AuthorizeTicket(t.Context(), info.Tickets[access.PurposeCDP], info.ID, access.PurposeCDP); err != nil {
		t.Errorf("its ticket does not work on the other node: %v", err)
	}
	if got := b.status(paused.ID); got != profiles.StatusPaused {
		t.Errorf("the paused session is %s", got)
	}
	await(t, "the move ends one run and begins another", func() bool { // it is recorded after the move
		runs, err := b.node.Runs.Runs(t.Context(), info.ID)
		return err == nil && len(runs) == 2 && (runs[0].Cause == "moved" || runs[1].Cause == "moved")
	})
	if d, err := b.node.Defaults.Default(t.Context(), "alice"); err != nil || d.Version != 1 {
		t.Errorf("a session with persist moves the default: %+v, %v", d, err)
	}
	b.end(alice, info.ID, filesystem)
	if d, err := b.node.Defaults.Default(t.Context(), "alice"); err != nil || d.Version != 2 {
		t.Errorf("the default after its end: %+v, %v", d, err)
	}
}

// What cannot be moved stays, and is named.
func TestMoveStays(t *testing.T) {
	broken := fault.New(fault.BrowserFailed, "test", "broken on purpose")
	for what, x := range map[string]struct {
		change func(*request.Create)
		before func(a *rig, to *others, id string)
		reason string
	}{
		"read_only": {change: func(c *request.Create) { c.ReadOnly = true }, reason: "it is read_only, so nothing of it is saved"},
		"discard":   {change: func(c *request.Create) { c.DiscardOnEnd = true }, reason: "its on_timeout is discard, so nothing of it is saved"},
		"connect":   {change: func(c *request.Create) { *c = c.Connecting() }, reason: "it ends with its connection (GET /v1/connect)"},
		"no node": {before: func(_ *rig, to *others, _ string) { to.ids = nil },
			reason: "no other node has a free place, the engine and a Chrome that is new enough"},
		"download": {before: func(a *rig, _ *others, id string) { a.downloads(id, "x.crdownload") },
			reason: "a download of it still runs; it moves when that has ended"},
		"save": {before: func(a *rig, _ *others, _ string) { a.browsers.fails(broken, "capture") },
			reason: "it could not be saved: the save failed: broken on purpose; nothing was stored, and the session continues unchanged; try again"},
		"refused": {before: func(_ *rig, to *others, _ string) {
			to.take = func(context.Context, string, string) error { return fault.New(fault.TooManySessions, "test", "full") }
		}, reason: "no other node continues it: full"},
	} {
		t.Run(what, func(t *testing.T) {
			a, _, drained, _, to := twoNodes(t, nil)
			id := a.create(alice, x.change).ID
			if x.before != nil {
				x.before(a, to, id)
			}
			drained.Move(t.Context())
			staying := drained.Status().Staying
			if len(staying) != 1 || staying[0].SessionID != id || staying[0].Reason != x.reason {
				t.Errorf("staying: %+v", staying)
			}
			if got := a.status(id); got != profiles.StatusReady {
				t.Errorf("the session is %s", got)
			}
			// A move that failed is not tried again at once: its clients would be disconnected.
			chrome := a.browsers.last()
			drained.Move(t.Context())
			if a.browsers.last() != chrome || a.Counts().Live != 1 {
				t.Error("the move was tried again")
			}
			a.clock.add(2 * movePause)
			a.browsers.works()
		})
	}
}

// The other node fails while it continues a session. The drained one continues it.
func TestMoveWhenTheTakerFails(t *testing.T) {
	a, b, drained, _, _ := twoNodes(t, nil)
	id := a.create(alice, nil).ID
	b.browsers.fails(errBroken, "restored", "spare")
	drained.Move(t.Context())
	if got := a.status(id); got != profiles.StatusReady || a.Counts().Live != 1 {
		t.Errorf("the session is %s", got)
	}
	b.browsers.works()
	drained.Move(t.Context())
	if n := a.Counts().Live; n != 1 {
		t.Error("the move was tried again at once")
	}
	a.clock.add(2 * movePause)
	drained.Move(t.Context())
	if n := b.Counts().Live; n != 1 {
		t.Errorf("%d sessions live on the other node", n)
	}
}

// A node dies after it has ended a session as moved, or stops before another has taken it. The
// next node that looks continues it, if it does so in time.
func TestMoveWhenTheGiverDies(t *testing.T) {
	a, b, drained, other, to := twoNodes(t, nil)
	to.take = func(context.Context, string, string) error { return errBroken }
	first, second := a.create(alice, nil).ID, a.create(bob, nil).ID
	drained.Leave(t.Context())
	for _, id := range []string{first, second} {
		if at, err := b.node.Nodes.NodeOf(t.Context(), id); err != nil || !at.Moving || at.NodeID != "a" {
			t.Errorf("it is at %+v, %v", at, err)
		}
	}
	a.kill()

	// The first is continued although its first try fails.
	_, err := b.catalogue.UpdateSession(t.Context(), second, func(s *profiles.Session) error {
		s.EndedAt = s.EndedAt.Add(-moveTime)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.browsers.fails(errBroken, "restored", "spare")
	b.clock.add(movePause)
	if err := other.Restart(t.Context()); err != nil || b.Counts().Live != 0 {
		t.Errorf("continued: %v", err)
	}
	b.browsers.works()
	b.clock.add(2 * movePause)
	if err := other.Restart(t.Context()); err != nil || b.status(first) != profiles.StatusReady {
		t.Errorf("not continued: %v", err)
	}
	// The second is too old. It can be resumed.
	rec, err := b.catalogue.Session(t.Context(), second)
	if err != nil || rec.Reason.Code != profiles.ReasonNotMoved || rec.EndedAt.IsZero() {
		t.Errorf("the other session: %+v, %v", rec, err)
	}
	if _, err := b.resumes(t.Context(), bob, second); err != nil {
		t.Error(err)
	}
	if left, err := b.node.Nodes.Moving(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("still moving: %+v, %v", left, err)
	}
}

// Of several nodes that continue a session at once, one does.
func TestMoveOnce(t *testing.T) {
	a, b, drained, other, to := twoNodes(t, nil)
	id := a.create(alice, nil).ID
	taken := make(chan error, 2)
	to.take = func(ctx context.Context, _, id string) error {
		go func() { taken <- other.Restart(ctx) }()
		err := other.Take(ctx, id)
		taken <- nil
		return err
	}
	drained.Move(t.Context())
	for range 2 {
		if err := <-taken; err != nil {
			t.Error(err)
		}
	}
	await(t, "one node has it", func() bool { return a.Counts().Live+b.Counts().Live == 1 })
	at, err := b.node.Nodes.NodeOf(t.Context(), id)
	if err != nil || at != (profiles.Place{NodeID: "b"}) {
		t.Errorf("it is at %+v, %v", at, err)
	}
}

// A session keeps its environment while it moves.
func TestMoveHoldsItsEnvironment(t *testing.T) {
	a, b, drained, other, to := twoNodes(t, nil)
	a.saved(alice, asDefault)
	id := a.create(alice, fromAlice).ID
	to.take = func(context.Context, string, string) error { return errBroken }
	drained.Leave(t.Context())
	_, err := b.Create(t.Context(), alice, newCreate(func(c *request.Create) { fromAlice(c); c.OnLive = request.OnLiveFail }))
	wantCode(t, err, fault.EnvironmentInUse)
	if err := other.Restart(t.Context()); err != nil || b.status(id) != profiles.StatusReady {
		t.Fatalf("not continued: %v", err)
	}
	_, err = b.Create(t.Context(), alice, newCreate(func(c *request.Create) { fromAlice(c); c.OnLive = request.OnLiveFail }))
	wantCode(t, err, fault.EnvironmentInUse)
	b.end(alice, id, none)
	_, err = a.Create(t.Context(), alice, newCreate(fromAlice))
	wantCode(t, err, fault.ShuttingDown)
	wantCode(t, a.Ready(t.Context()), fault.ShuttingDown)
	_, err = b.Create(t.Context(), alice, newCreate(func(c *request.Create) { fromAlice(c); c.OnLive = request.OnLiveFail }))
	if err != nil {
		t.Error(err)
	}
}

// A session that was being made when its node began to leave is moved too. Creates that come
// later are refused, and the node is not ready.
func TestLeaveMovesWhatIsBegun(t *testing.T) {
	a, b, drained, _, _ := twoNodes(t, nil)
	a.saved(alice, asDefault)
	left := make(chan struct{})
	a.browsers.on("restored", func(*fakeChrome) error {
		go func() {
			defer close(left)
			drained.Leave(t.Context())
		}()
		await(t, "the node is not ready", func() bool { return fault.Is(a.Ready(t.Context()), fault.ShuttingDown) })
		return nil
	})
	info := a.create(alice, fromAlice)
	<-left
	if got := b.status(info.ID); got != profiles.StatusReady || a.Counts().Live != 0 {
		t.Errorf("the session is %s, and %d live on the node that leaves", got, a.Counts().Live)
	}
	_, err := a.Create(t.Context(), bob, newCreate(nil))
	wantCode(t, err, fault.ShuttingDown)
}

// Calls that come while their session moves, or just after, are to be made on its new node. None
// is answered as if the session had ended.
func TestCallsWhileMoving(t *testing.T) {
	a, _, drained, other, to := twoNodes(t, nil)
	id := a.create(alice, nil).ID
	moving := func(when string) {
		t.Helper()
		_, err := a.End(t.Context(), alice, id, filesystem)
		if !errors.Is(err, ErrMoving) {
			t.Errorf("an end %s: %v", when, err)
		}
		_, err = a.Checkpoint(t.Context(), alice, id, request.Checkpoint{})
		if !errors.Is(err, ErrMoving) {
			t.Errorf("a checkpoint %s: %v", when, err)
		}
	}
	a.browsers.on("close", func(*fakeChrome) error { moving("while the session is saved"); return nil })
	to.take = func(ctx context.Context, _, id string) error {
		moving("before the session continues")
		return other.Take(ctx, id)
	}
	found := a.sessions.Find(id) // by a call that comes just before the session is gone
	drained.Move(t.Context())
	moving("after the session has moved")
	if err := found.use(t.Context(), nil); !errors.Is(err, ErrMoving) {
		t.Errorf("a call that has found the session before it moved: %v", err)
	}
}

// A page that was being opened when its session began to move may have reached its site, and is
// not opened again on the new node. What only reads is to be made there.
func TestNavigateWhileMoving(t *testing.T) {
	a, _, drained, _, _ := twoNodes(t, nil)
	id := a.create(alice, nil).ID
	moved := make(chan struct{})
	a.browsers.on("navigate", func(c *fakeChrome) error {
		a.browsers.works()
		go func() {
			defer close(moved)
			drained.Move(t.Context())
		}()
		await(t, "the session begins to move", func() bool { return Lookup{a.Service}.Moving(id) })
		return context.Canceled
	})
	_, err := a.Navigate(t.Context(), alice, id, "https://a.example/login?once=1")
	if errors.Is(err, ErrMoving) || !errors.Is(err, ErrInterrupted) || !fault.Is(err, fault.NodeUnavailable) {
		t.Error(err)
	}
	<-moved
}

// A checkpoint that a move interrupts can be made on the new node.
func TestCheckpointWhileMoving(t *testing.T) {
	a, _, drained, _, _ := twoNodes(t, nil)
	id := a.create(alice, nil).ID
	moved := make(chan struct{})
	a.browsers.on("capture", func(c *fakeChrome) error {
		a.browsers.works()
		go func() {
			defer close(moved)
			drained.Move(t.Context())
		}()
		await(t, "the move waits for the checkpoint", func() bool { return Lookup{a.Service}.Moving(id) })
		return context.Canceled
	})
	_, err := a.Checkpoint(t.Context(), alice, id, request.Checkpoint{})
	if !errors.Is(err, ErrMoving) {
		t.Error(err)
	}
	<-moved
}
