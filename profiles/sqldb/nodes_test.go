package sqldb_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// shortLease is the lease time of these tests.
const shortLease = 300 * time.Millisecond

// openNode opens a database as a node.
func openNode(t *testing.T, url string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Node: true, LeaseTime: shortLease})
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

func join(t *testing.T, db *sqldb.DB, id string) profiles.Node {
	t.Helper()
	n, err := db.Nodes.Join(t.Context(), profiles.Node{ID: id, URL: "http://" + id, Facts: json.RawMessage(`{"a":1}`), StartedAt: time.Unix(1, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// takeOver takes a node over as soon as its lease has ended.
func takeOver(t *testing.T, db *sqldb.DB, n profiles.Node) {
	t.Helper()
	for {
		taken, err := db.Nodes.TakeOver(t.Context(), n.ID, n.Number)
		if err != nil {
			t.Fatal(err)
		}
		if taken {
			return
		}
	}
}

func create(t *testing.T, db *sqldb.DB, id string) error {
	t.Helper()
	return db.Sessions.CreateSession(t.Context(), profiles.Session{ID: id, UserID: "ann", Status: profiles.StatusRunning, CreatedAt: time.Unix(2, 0)})
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

// A node whose lease another one took over writes nothing any more. Its sessions are found,
// and it can join again.
func TestTakeOver(t *testing.T) {
	url := postgresURL(t)
	a, b := openNode(t, url), openNode(t, url)
	first, other := join(t, a, "a"), join(t, b, "b")
	if first.Number == other.Number || first.Left <= 0 || first.Left > shortLease {
		t.Fatalf("joined as %+v and %+v", first, other)
	}
	if err := create(t, a, "s1"); err != nil {
		t.Fatal(err)
	}
	takeOver(t, b, first)
	wantCode(t, create(t, a, "s2"), fault.NodeLost)
	_, err := a.Nodes.Renew(t.Context(), nil)
	wantCode(t, err, fault.NodeLost)
	stranded, err := b.Nodes.Stranded(t.Context())
	if err != nil || len(stranded) != 1 || stranded[0].ID != "s1" || stranded[0].NodeID != "a" {
		t.Fatalf("stranded: %+v, %v", stranded, err)
	}
	wantCode(t, b.Nodes.RemoveNode(t.Context(), "a"), fault.NodeInUse)

	// b ends the session and resumes it: then it is b's.
	at := time.Unix(3, 0)
	change := func(ended time.Time, status profiles.Status) {
		t.Helper()
		if _, err := b.Sessions.UpdateSession(t.Context(), "s1", func(s *profiles.Session) error {
			s.EndedAt, s.Status = ended, status
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	change(at, profiles.StatusError)
	if s, err := b.Sessions.Session(t.Context(), "s1"); err != nil || s.NodeID != "a" {
		t.Errorf("an ended session has node %q, %v; want a", s.NodeID, err)
	}
	change(time.Time{}, profiles.StatusRunning)
	if s, err := b.Sessions.Session(t.Context(), "s1"); err != nil || s.NodeID != "b" {
		t.Errorf("a resumed session has node %q, %v; want b", s.NodeID, err)
	}
	if at, err := b.Nodes.NodeOf(t.Context(), "s1"); err != nil || at != (profiles.Place{NodeID: "b"}) {
		t.Errorf("a resumed session is at %+v, %v; want b", at, err)
	}
	change(at, profiles.StatusError)
	if at, err := b.Nodes.NodeOf(t.Context(), "s1"); err != nil || at != (profiles.Place{NodeID: "b", Ended: true}) {
		t.Errorf("an ended session was at %+v, %v; want b", at, err)
	}
	_, err = b.Nodes.NodeOf(t.Context(), "none")
	wantCode(t, err, fault.SessionNotFound)
	change(time.Time{}, profiles.StatusRunning)

	again := join(t, a, "a")
	if again.Number <= other.Number {
		t.Errorf("joined again as number %d, after %d", again.Number, other.Number)
	}
	if err := create(t, a, "s2"); err != nil {
		t.Error(err)
	}
}

// A valid lease is not taken over, nor one that was renewed, or whose node joined again.
func TestLeaseHolds(t *testing.T) {
	url := postgresURL(t)
	a, b := openNode(t, url), openNode(t, url)
	first := join(t, a, "a")
	join(t, b, "b")
	for began := time.Now(); time.Since(began) < 3*shortLease; {
		asked := time.Now()
		n, err := a.Nodes.Renew(t.Context(), json.RawMessage(`{"free":3}`))
		if err != nil {
			t.Fatal(err)
		}
		taken, err := b.Nodes.TakeOver(t.Context(), "a", first.Number)
		if late := time.Since(asked) > shortLease; err != nil || taken && !late {
			t.Fatalf("a valid lease was taken over: %v, %v; left %v", taken, err, n.Left)
		}
		if taken { // the machine was too busy for so short a lease
			first = join(t, a, "a")
		}
	}
	if err := b.Nodes.Drain(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	n, err := a.Nodes.Renew(t.Context(), json.RawMessage(`{"free":2}`))
	if err != nil || !n.Draining || string(n.Status) != `{"free":2}` {
		t.Errorf("renewed: %+v, %v", n, err)
	}
	second := join(t, a, "a")
	takeOver(t, b, second)
	if taken, err := b.Nodes.TakeOver(t.Context(), "a", first.Number); err != nil || taken {
		t.Errorf("a former lease was taken over: %v, %v", taken, err)
	}
	all, err := b.Nodes.Nodes(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != "a" || all[0].Number != 0 || all[1].URL != "http://b" {
		t.Errorf("nodes: %+v, %v", all, err)
	}
	if err := b.Nodes.RemoveNode(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	wantCode(t, b.Nodes.RemoveNode(t.Context(), "a"), fault.NodeNotFound)
	wantCode(t, b.Nodes.Drain(t.Context(), "a", true), fault.NodeNotFound)
}

// A transaction that began before a takeover ends before it: the takeover waits.
func TestTakeOverWaits(t *testing.T) {
	url := postgresURL(t)
	a, b := openNode(t, url), openNode(t, url)
	first := join(t, a, "a")
	join(t, b, "b")
	if err := create(t, a, "s1"); err != nil {
		t.Fatal(err)
	}
	taken := make(chan struct{})
	_, err := a.Sessions.UpdateSession(t.Context(), "s1", func(s *profiles.Session) error {
		go func() {
			defer close(taken)
			takeOver(t, b, first)
		}()
		select {
		case <-taken:
			t.Error("a node was taken over while it wrote")
		case <-time.After(shortLease + 100*time.Millisecond): // the lease is over, and the server does not end the transaction yet
		}
		s.Goal = "written"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-taken
	if s, err := b.Sessions.Session(t.Context(), "s1"); err != nil || s.Goal != "written" {
		t.Errorf("read %q, %v", s.Goal, err)
	}
}

// A node that is stopped in a transaction keeps its locks only until the server ends that: the
// takeover need not wait for the node, and nothing is written.
func TestTakeOverOfStopped(t *testing.T) {
	url := postgresURL(t)
	a, b := openNode(t, url), openNode(t, url)
	first := join(t, a, "a")
	join(t, b, "b")
	if err := create(t, a, "s1"); err != nil {
		t.Fatal(err)
	}
	_, err := a.Sessions.UpdateSession(t.Context(), "s1", func(s *profiles.Session) error {
		takeOver(t, b, first) // the transaction waits meanwhile, as that of a stopped process does
		s.Goal = "written"
		return nil
	})
	wantCode(t, err, fault.NodeLost)
	if s, err := b.Sessions.Session(t.Context(), "s1"); err != nil || s.Goal != "" {
		t.Errorf("read %q, %v", s.Goal, err)
	}
}

// Nodes and a daemon that has the database to itself exclude each other.
func TestNodesAndOneDaemon(t *testing.T) {
	url := server.Database(t)
	alone, err := sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Node: true})
	wantCode(t, err, fault.DataDirInUse)
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	openNode(t, url)
	openNode(t, url)
	_, err = sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Exclusive: true})
	wantCode(t, err, fault.DataDirInUse)
	_, err = sqldb.Open(t.Context(), sqldb.Options{Path: sqldb.Memory, Now: time.Now, Node: true})
	wantCode(t, err, fault.Config)
}

// A daemon can start as soon as another has ended: Close waits until the lock is given back.
func TestLockGivenBack(t *testing.T) {
	url := server.Database(t)
	for range 20 {
		db, err := sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// All nodes write one chain of audit entries, each after the newest one of any node.
func TestAuditOfTwoNodes(t *testing.T) {
	url := postgresURL(t)
	both := []*sqldb.DB{openNode(t, url), openNode(t, url)}
	join(t, both[0], "a")
	join(t, both[1], "b")
	done := make(chan error)
	for _, db := range both {
		go func() {
			for range 10 {
				batch := []profiles.AuditEntry{{At: time.Unix(3, 0).UTC(), By: "key", Count: 1}, {At: time.Unix(4, 0).UTC(), By: "key", Count: 1}}
				batch[0].Follow(profiles.AuditEntry{}) // the node does not know what the other has written
				batch[1].Follow(batch[0])
				if err := db.Audit.AddAudit(t.Context(), batch, 0); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range both {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	page, _, err := both[0].Audit.AuditPage(t.Context(), profiles.AuditFilter{OldestFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	var chain profiles.AuditChain
	for _, e := range page {
		if err := chain.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := chain.CheckBegin(); err != nil || chain.Count != 40 {
		t.Errorf("%d entries, want 40: %v", chain.Count, err)
	}
	entry := profiles.AuditEntry{At: time.Unix(5, 0).UTC(), By: "daemon", Call: profiles.AuditPruned, Count: 1}
	if err := both[0].Audit.AddAudit(t.Context(), []profiles.AuditEntry{entry}, 20); err != nil {
		t.Fatal(err)
	}
	wantCode(t, both[1].Audit.AddAudit(t.Context(), []profiles.AuditEntry{entry}, 10), fault.StoreFailed)
}

// A valid lease is taken from a former process of the node, and not from one with another data
// directory. When it has ended, such a process gets it.
func TestSameID(t *testing.T) {
	url := postgresURL(t)
	at := func(db *sqldb.DB, home string) error {
		_, err := db.Nodes.Join(t.Context(), profiles.Node{ID: "a", URL: "http://" + home, Facts: json.RawMessage(`{"home":"` + home + `"}`), StartedAt: time.Unix(1, 0)})
		return err
	}
	long, err := sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Node: true, LeaseTime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = long.Close() })
	if err := at(long, "one"); err != nil {
		t.Fatal(err)
	}
	other := openNode(t, url)
	err = at(other, "two")
	wantCode(t, err, fault.NodeInUse)
	if want := "the daemon at http://one is node a"; !strings.Contains(fault.MessageOf(err), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := create(t, long, "s1"); err != nil {
		t.Errorf("the refused process has ended the lease: %v", err)
	}
	again := openNode(t, url)
	if err := at(again, "one"); err != nil {
		t.Errorf("the node cannot start again: %v", err)
	}
	wantCode(t, create(t, long, "s2"), fault.NodeLost)
	for fault.Is(err, fault.NodeInUse) {
		err = at(other, "two")
	}
	if err != nil {
		t.Error(err)
	}
	wantCode(t, create(t, again, "s3"), fault.NodeLost)
}
