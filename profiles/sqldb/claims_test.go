package sqldb_test

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// A session that was ended as moved is claimed by one node at a time, also if that is the one that
// has ended it. Until then that one holds its environment.
func TestClaimOfMovedSession(t *testing.T) {
	url := postgresURL(t)
	nodes := map[string]*sqldb.DB{"a": openNode(t, url), "b": openNode(t, url), "c": openNode(t, url)}
	for id, db := range nodes {
		join(t, db, id)
	}
	claim := func(node, id, want string) {
		t.Helper()
		held, err := nodes[node].Claims.ClaimSession(t.Context(), id, "key")
		if err != nil || (held == nil) != (want == "") || held != nil && held.NodeID != want {
			t.Errorf("%s claims %s: held by %+v, %v; want %q", node, id, held, err, want)
		}
	}
	for _, id := range []string{"taken", "kept"} {
		claim("a", id, "")
		if err := nodes["a"].Sessions.CreateSession(t.Context(), profiles.Session{ID: id, UserID: "ann", Status: profiles.StatusRunning, CreatedAt: time.Unix(2, 0)}); err != nil {
			t.Fatal(err)
		}
		held, _, err := nodes["a"].Claims.EnterEnvironment(t.Context(), profiles.SessionClaim{SessionID: id, UserID: "ann", SourceType: "snapshot", SourceID: "of " + id, SnapshotID: "of " + id}, "", false)
		if err != nil || held != nil {
			t.Fatal(held, err)
		}
		claim("b", id, "a")
		err = nodes["a"].Sessions.EndSession(t.Context(), profiles.End{SessionID: id, Status: profiles.StatusCompleted, Reason: profiles.ReasonMoved.With(""), EndedAt: time.Unix(3, 0)})
		if err != nil {
			t.Fatal(err)
		}
		claim("c", "other of "+id, "")
		held, _, err = nodes["c"].Claims.EnterEnvironment(t.Context(), profiles.SessionClaim{SessionID: "other of " + id, UserID: "ann", SourceType: "snapshot", SourceID: "of " + id, SnapshotID: "of " + id}, "", false)
		if err != nil || held == nil || held.SessionID != id {
			t.Errorf("the environment of %s is held by %+v, %v", id, held, err)
		}
	}
	claim("b", "taken", "")
	claim("a", "taken", "b")
	claim("c", "taken", "b")

	claim("a", "kept", "") // no other node takes it
	claim("b", "kept", "a")
	if err := nodes["a"].Claims.ReleaseSession(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	claim("b", "kept", "")
}
