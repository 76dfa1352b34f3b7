package sqldb_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// A stranded session is ended once, with its runs, although two nodes do it at once. What its node
// may have of it is remembered. A session whose node has joined again is not ended.
func TestEndStranded(t *testing.T) {
	url := postgresURL(t)
	a, b, c := openNode(t, url), openNode(t, url), openNode(t, url)
	first := join(t, a, "a")
	join(t, b, "b")
	join(t, c, "c")
	for _, id := range []string{"s1", "s2"} {
		if err := a.Sessions.CreateSession(t.Context(), profiles.Session{ID: id, UserID: "ann", Status: profiles.StatusRunning, RunDir: "dir-" + id,
			Sealed: []byte("sealed"), CreatedAt: time.Unix(2, 0)}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Runs.BeginRun(t.Context(), profiles.Run{ID: "run-" + id, SessionID: id, StartedAt: time.Unix(2, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	answer := profiles.Answer{Scope: "k", Key: "1", CreatedAt: time.Unix(2, 0)}
	if _, fresh, err := a.Answers.ClaimAnswer(t.Context(), answer); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	chosen := profiles.Answer{Scope: "k", Key: "2", Body: []byte(`{"session_id":"s"}`), CreatedAt: time.Unix(2, 0)}
	if _, fresh, err := a.Answers.ClaimAnswer(t.Context(), chosen); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	if err := b.Answers.DropUnfinishedAnswers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if known, fresh, err := a.Answers.ClaimAnswer(t.Context(), answer); err != nil || fresh || known.Elsewhere {
		t.Errorf("a claim of this node: %+v, %v, %v", known, fresh, err)
	}
	if known, fresh, err := b.Answers.ClaimAnswer(t.Context(), answer); err != nil || fresh || !known.Elsewhere {
		t.Errorf("a node dropped the unfinished answer of another: %+v, %v, %v", known, fresh, err)
	}
	end := func(db *sqldb.DB, id string) bool {
		t.Helper()
		done, err := db.Nodes.EndStranded(t.Context(), profiles.StrandedEnd{Restart: true,
			End: profiles.End{SessionID: id, Status: profiles.StatusError, Reason: profiles.ReasonNodeLost.With("x"), EndedAt: time.Unix(9, 0)},
			Run: func(r profiles.Run) profiles.RunEnd {
				return profiles.RunEnd{RunID: r.ID, Status: profiles.RunFailed, EndedAt: time.Unix(9, 0), Last: []profiles.Event{{Type: "ended", At: time.Unix(9, 0)}}}
			}})
		if err != nil {
			t.Error(err)
		}
		return done
	}
	if end(b, "s1") {
		t.Error("a session was ended whose node has a lease")
	}
	takeOver(t, b, first)
	var wg sync.WaitGroup
	done := make([]bool, 2)
	for i, db := range []*sqldb.DB{b, c} {
		wg.Go(func() { done[i] = end(db, "s1") })
	}
	wg.Wait()
	if done[0] == done[1] {
		t.Errorf("ended by both or none: %v", done)
	}
	s, err := b.Sessions.Session(t.Context(), "s1")
	if err != nil || s.Status != profiles.StatusError || s.Reason.Code != profiles.ReasonNodeLost || s.EndedAt.IsZero() || s.Sealed != nil {
		t.Errorf("the session: %+v, %v", s, err)
	}
	runs, err := b.Runs.Runs(t.Context(), "s1")
	if err != nil || len(runs) != 1 || runs[0].Status != profiles.RunFailed {
		t.Errorf("its runs: %+v, %v", runs, err)
	}
	if _, fresh, err := b.Answers.ClaimAnswer(t.Context(), answer); err != nil || !fresh {
		t.Errorf("the unfinished answer of the lost node stayed: %v, %v", fresh, err)
	}
	answer.Status, answer.Body = 200, []byte("{}")
	if err := b.Answers.FinishAnswer(t.Context(), answer); err != nil {
		t.Error(err)
	}
	if known, fresh, err := c.Answers.ClaimAnswer(t.Context(), answer); err != nil || fresh || known.Elsewhere || known.Status != 200 {
		t.Errorf("a finished answer of another node: %+v, %v, %v", known, fresh, err)
	}
	if known, fresh, err := b.Answers.ClaimAnswer(t.Context(), chosen); err != nil || fresh || string(known.Body) != string(chosen.Body) {
		t.Errorf("the lost node's choice: %+v, %v, %v", known, fresh, err)
	}

	join(t, a, "a")
	if end(b, "s2") {
		t.Error("a session was ended whose node has joined again")
	}
	left, err := a.Left.LeftSessions(t.Context(), "a")
	if err != nil || len(left) != 1 || left[0].SessionID != "s1" || left[0].RunDir != "dir-s1" || string(left[0].Sealed) != "sealed" || !left[0].EndedAt.Equal(time.Unix(9, 0)) {
		t.Fatalf("left: %+v, %v", left, err)
	}

	// Its restart is claimed once, and keeps the record until then.
	forget := func() {
		t.Helper()
		if err := a.Left.ForgetLeft(t.Context(), "a", "dir-s1"); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	for i, db := range []*sqldb.DB{b, c} {
		if claimed, err := db.Left.SetRestart(t.Context(), left[0], false); err != nil || claimed != (i == 0) {
			t.Errorf("claim %d: %v, %v", i, claimed, err)
		}
	}
	if again, err := b.Left.Restarts(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("to be started again: %+v, %v", again, err)
	}
	forget()
	if left, err := a.Left.LeftSessions(t.Context(), "a"); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// A commit or an end whose check fails changes nothing.
func TestChecks(t *testing.T) {
	db := openNode(t, postgresURL(t))
	join(t, db, "a")
	if err := create(t, db, "s1"); err != nil {
		t.Fatal(err)
	}
	refuse := func(s profiles.Session) error { return fault.New(fault.NodeLost, "test", "%s", s.NodeID) }
	_, err := db.Snapshots.Commit(t.Context(), profiles.Commit{Snapshot: profiles.Snapshot{ID: "p1", SessionID: "s1", UserID: "ann"}, Check: refuse})
	wantCode(t, err, fault.NodeLost)
	_, err = db.Snapshots.Snapshot(t.Context(), "p1")
	wantCode(t, err, fault.SnapshotNotFound)
	wantCode(t, db.Sessions.EndSession(t.Context(), profiles.End{SessionID: "s1", Status: profiles.StatusError, EndedAt: time.Unix(9, 0), Check: refuse}), fault.NodeLost)
	if s, err := db.Sessions.Session(t.Context(), "s1"); err != nil || !s.EndedAt.IsZero() {
		t.Errorf("the session: %+v, %v", s, err)
	}
}

// Two nodes never send a delivery at once. After a failed attempt any node may send it.
func TestClaimedDeliveries(t *testing.T) {
	url := postgresURL(t)
	a, b := openNode(t, url), openNode(t, url)
	join(t, a, "a")
	join(t, b, "b")
	at := time.Unix(5, 0)
	for _, id := range []string{"s1", "s2", "s3"} {
		if err := a.Sessions.CreateSession(t.Context(), profiles.Session{ID: id, UserID: "ann", Status: profiles.StatusRunning, CreatedAt: at,
			Notices: []profiles.Notice{{ID: "d-" + id, URL: "http://x", At: at, Body: []byte("{}")}}}); err != nil {
			t.Fatal(err)
		}
	}
	due := func(db *sqldb.DB) []profiles.Delivery {
		t.Helper()
		all, err := db.Deliveries.DueDeliveries(t.Context(), at, at.Add(time.Hour), 2)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	seen := map[string]int{}
	var mine []profiles.Delivery
	for _, db := range []*sqldb.DB{a, b, a} {
		for _, d := range due(db) {
			seen[d.ID]++
			mine = append(mine, d)
		}
	}
	if len(seen) != 3 || len(mine) != 3 {
		t.Errorf("claimed: %v", seen)
	}
	if err := a.Deliveries.FinishAttempt(t.Context(), mine[0], profiles.Attempt{State: profiles.DeliveryPending, NextAt: at, At: at}); err != nil {
		t.Fatal(err)
	}
	if again := due(b); len(again) != 1 || again[0].ID != mine[0].ID {
		t.Errorf("due after a failed attempt: %+v", again)
	}
}
