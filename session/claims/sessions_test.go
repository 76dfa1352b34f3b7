package claims_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/restore"
)

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// annsDefault is what a create from the default of user ann starts from.
var annsDefault = restore.Environment{UserID: "ann", Source: &restore.Source{Type: restore.SourceUserDefault, ID: "ann"},
	Snapshot: &profiles.Snapshot{ID: id(1), SessionID: "s1", UserID: "ann"}}

// enter claims a session and its environment on a node.
func enter(t *testing.T, n *node, sessionID string, from restore.Environment, company bool) *claims.Holder {
	t.Helper()
	must(t, n.claims().Claim(t.Context(), "key", sessionID))
	held, err := n.claims().Enter(t.Context(), sessionID, from, company)
	must(t, err)
	return held
}

// An ID that one node has is taken on the other, until the session ends or its node has lost
// its lease.
func TestSessionIDsOfTwoNodes(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	a, b := both[0], both[1]
	must(t, a.claims().Claim(t.Context(), "key", "s1"))
	err := b.claims().Claim(t.Context(), "key", "s1")
	wantCode(t, err, fault.RequestInProgress)
	var elsewhere *registry.Elsewhere
	if !errors.As(err, &elsewhere) || elsewhere.NodeID != "a" {
		t.Errorf("got %v, want an error that names node a", err)
	}
	wantCode(t, b.claims().Claim(t.Context(), "other", "s1"), fault.SessionExists)
	a.session()
	must(t, a.Sessions.EndSession(t.Context(), profiles.End{SessionID: "s1", Status: profiles.StatusCompleted, EndedAt: time.Unix(5, 0)}))
	must(t, b.claims().Claim(t.Context(), "key", "s1"))
	a.claims().Release(t.Context(), "s1") // it is B's now
	wantCode(t, a.claims().Claim(t.Context(), "key", "s1"), fault.RequestInProgress)
	a.takeOver(b)
	must(t, a.claims().Claim(t.Context(), "key", "s1"))
}

// A session holds its environment for the creates of all nodes.
func TestEnvironmentsOfTwoNodes(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	a, b := both[0], both[1]
	if held := enter(t, a, "s1", annsDefault, false); held != nil {
		t.Fatalf("held by %+v", held)
	}
	if held := enter(t, b, "s2", annsDefault, false); held == nil || *held != (claims.Holder{SessionID: "s1", NodeID: "a"}) {
		t.Errorf("held by %+v, want session s1 on node a", held)
	}
	if held := enter(t, b, "s2", annsDefault, true); held != nil {
		t.Errorf("a fork is refused because of %+v", held)
	}
	others := annsDefault
	others.UserID, others.Source = "bob", &restore.Source{Type: restore.SourceUserDefault, ID: "bob"}
	others.Snapshot = &profiles.Snapshot{ID: id(9), SessionID: "s9", UserID: "bob"}
	if held := enter(t, b, "s3", others, false); held != nil {
		t.Errorf("another user's environment is held by %+v", held)
	}
	b.claims().Release(t.Context(), "s2")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if ended, err := b.claims().AwaitSession(canceled, "s1"); ended || err != nil {
		t.Errorf("ended: %v, %v", ended, err)
	}
	b.takeOver(a)
	if ended, err := b.claims().AwaitSession(t.Context(), "s1"); !ended || err != nil {
		t.Errorf("the session of a dead node holds its environment: %v", err)
	}
	if held := enter(t, b, "s2", annsDefault, false); held != nil {
		t.Errorf("held by %+v", held)
	}
}

// Of two nodes that create a session of the same environment at once, one gets it.
func TestTwoNodesAtOnce(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	for range 20 {
		won := make(chan bool, 2)
		for i, n := range both {
			go func() {
				sessionID := [2]string{"s1", "s2"}[i]
				err := n.claims().Claim(t.Context(), "key", sessionID)
				var held *claims.Holder
				if err == nil {
					held, err = n.claims().Enter(t.Context(), sessionID, annsDefault, false)
				}
				if err != nil {
					t.Error(err)
				}
				won <- held == nil && err == nil
			}()
		}
		if one, other := <-won, <-won; one == other {
			t.Fatalf("got the environment: %v and %v", one, other)
		}
		both[0].claims().Release(t.Context(), "s1")
		both[1].claims().Release(t.Context(), "s2")
	}
}

// Of two nodes that claim one ID at once, one gets it, and of two that would use up a quota at
// once, one does.
func TestClaimsAtOnce(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	full := errors.New("full")
	for i := range 10 {
		won := make(chan error, 2)
		for _, n := range both {
			go func() { won <- n.claims().Claim(t.Context(), "key", fmt.Sprint("one-", i)) }()
		}
		if first, second := <-won, <-won; (first == nil) == (second == nil) {
			t.Errorf("both nodes, or none, got the ID: %v, %v", first, second)
		}
		for k, n := range both {
			must(t, n.claims().Claim(t.Context(), "key", fmt.Sprint("two-", i, k)))
		}
		for k, n := range both {
			go func() {
				of := profiles.QuotaCount{UserID: fmt.Sprint("user-", i), KeyID: "key", OfUser: true}
				won <- n.claims().Count(t.Context(), fmt.Sprint("two-", i, k), of, func(u profiles.QuotaUse) error {
					if u.UserSessions > 0 {
						return full
					}
					return nil
				})
			}()
		}
		if first, second := <-won, <-won; !errors.Is(errors.Join(first, second), full) || first != nil && second != nil {
			t.Errorf("one of two must be refused: %v, %v", first, second)
		}
	}
}

// A scheduled check makes way for a create on another node, which waits for it. A requested
// check waits for one on another node.
func TestChecksOfTwoNodes(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	a, b := both[0], both[1]
	wanted := make(chan struct{})
	leave := a.claims().EnterScheduled(t.Context(), "ann", id(1), func(context.Context) { close(wanted) })
	if leave == nil {
		t.Fatal("the check is refused")
	}
	if b.claims().EnterScheduled(t.Context(), "ann", id(1), func(context.Context) {}) != nil {
		t.Error("two scheduled checks of a user are under way")
	}
	if held := enter(t, b, "s1", annsDefault, true); held == nil || !held.Check || held.NodeID != "a" {
		t.Fatalf("held by %+v, want the check on node a", held)
	}
	<-wanted
	done := make(chan error, 2)
	go func() { done <- b.claims().AwaitCheck(t.Context(), "ann") }()
	go func() {
		ended, err := b.claims().EnterCheck(t.Context(), "ann")
		if err == nil {
			ended()
		}
		done <- err
	}()
	leave()
	must(t, <-done)
	must(t, <-done)
	if held := enter(t, b, "s1", annsDefault, false); held != nil {
		t.Fatalf("held by %+v", held)
	}
	if a.claims().EnterScheduled(t.Context(), "ann", id(1), func(context.Context) {}) != nil {
		t.Error("a check began of an environment that a session on another node holds")
	}
}

// A snapshot that one node reads cannot be removed by the other.
func TestHoldsOfTwoNodes(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	a, b := both[0], both[1]
	a.session()
	a.commit(id(1))
	release, err := a.claims().Hold(t.Context(), id(1), "restored")
	must(t, err)
	_, err = b.Snapshots.DeleteSnapshot(t.Context(), id(1))
	wantCode(t, err, fault.SnapshotInUse)
	release()
	release()
	_, err = b.Snapshots.DeleteSnapshot(t.Context(), id(1))
	must(t, err)
	_, err = a.claims().Hold(t.Context(), id(1), "restored")
	wantCode(t, err, fault.SnapshotNotFound)
}

// The sessions of a user and of a key count together on all nodes.
func TestQuotasOfTwoNodes(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	a, b := both[0], both[1]
	var got profiles.QuotaUse
	of := func(key string, saves bool) profiles.QuotaCount {
		return profiles.QuotaCount{UserID: "ann", KeyID: key, Saves: saves, OfUser: true, OfKey: true}
	}
	count := func(n *node, sessionID string, of profiles.QuotaCount) {
		t.Helper()
		must(t, n.claims().Claim(t.Context(), "key", sessionID))
		must(t, n.claims().Count(t.Context(), sessionID, of, func(u profiles.QuotaUse) error { got = u; return nil }))
	}
	count(a, "s1", of("k1", true))
	must(t, a.claims().Claim(t.Context(), "k2", "s2"))
	s2 := of("k2", false) // counts from its record on
	must(t, a.Sessions.CreateSession(t.Context(), profiles.Session{ID: "s2", UserID: "ann", CreatedAt: time.Unix(3, 0), Counts: &s2}))
	count(b, "s3", of("k1", true))
	if want := (profiles.QuotaUse{UserSessions: 2, UserSaving: 1, KeySessions: 1, KeySaving: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	refused := errors.New("refused")
	must(t, b.claims().Claim(t.Context(), "key", "s4"))
	if err := b.claims().Count(t.Context(), "s4", of("k1", true), func(profiles.QuotaUse) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	unclaimed := profiles.Session{ID: "s6", UserID: "ann", CreatedAt: time.Unix(3, 0), Counts: &s2}
	if err := b.Sessions.CreateSession(t.Context(), unclaimed); !fault.Is(err, fault.NodeLost) {
		t.Errorf("a session without a claim is recorded: %v", err)
	}
	b.takeOver(a)
	count(b, "s5", of("k1", true))
	if want := (profiles.QuotaUse{UserSessions: 1, UserSaving: 1, KeySessions: 1, KeySaving: 1}); got != want {
		t.Errorf("after A died: got %+v, want %+v", got, want)
	}
	count(b, "s7", profiles.QuotaCount{UserID: "ann", KeyID: "k1"}) // nothing limits it
	if want := (profiles.QuotaUse{}); got != want {
		t.Errorf("without quotas: got %+v, want %+v", got, want)
	}
}

// A node drops the unfinished answers of its own requests and of dead nodes, and no others.
func TestAnswersOfTwoNodes(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	a, b := both[0], both[1]
	claim := func(n *node, key string) bool {
		t.Helper()
		_, fresh, err := n.Answers.ClaimAnswer(t.Context(), profiles.Answer{Scope: "key", Key: key, BodyHash: "x", CreatedAt: time.Unix(3, 0)})
		must(t, err)
		return fresh
	}
	if !claim(a, "one") || !claim(b, "two") {
		t.Fatal("a new key is claimed")
	}
	b.join("b") // its daemon started again
	must(t, b.Answers.DropUnfinishedAnswers(t.Context()))
	if claim(b, "one") {
		t.Error("the request of node A, which is running, can be made again")
	}
	if !claim(b, "two") {
		t.Error("the request of B's former daemon cannot be made again")
	}
	b.takeOver(a)
	if !claim(b, "one") {
		t.Error("the request of the dead node cannot be made again")
	}
}

// A one-use ticket is valid once, on any node.
func TestTicketsOfTwoNodes(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	a, b := both[0], both[1]
	now, hash := time.Unix(100, 0), sha256.Sum256([]byte("ticket"))
	added, err := a.Claims.AddTicket(t.Context(), hash, "key", now.Add(time.Minute), now, 1)
	must(t, err)
	if !added {
		t.Fatal("the ticket is refused")
	}
	if added, err = b.Claims.AddTicket(t.Context(), sha256.Sum256(nil), "key", now.Add(time.Minute), now, 1); err != nil || added {
		t.Errorf("a second one was added: %v, %v", added, err)
	}
	for i, want := range []string{"key", ""} {
		if got, err := b.Claims.SpendTicket(t.Context(), hash, now); err != nil || got != want {
			t.Errorf("attempt %d: got %q, %v", i, got, err)
		}
	}
	_, err = a.Claims.AddTicket(t.Context(), hash, "key", now.Add(time.Minute), now, 1)
	must(t, err)
	if got, err := b.Claims.SpendTicket(t.Context(), hash, now.Add(time.Minute)); err != nil || got != "" {
		t.Errorf("an expired ticket is valid: %q, %v", got, err)
	}
}

// A sweep removes the rows of nodes without their lease and of expired tickets, and no others.
func TestVoidRowsAreRemoved(t *testing.T) {
	both := nodes(t, nil, "a", "b")
	a, b := both[0], both[1]
	now := time.Unix(1e6, 0)
	conn, err := pgx.Connect(t.Context(), server.Server(t).URL("shared"))
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	rows := func(want int) {
		t.Helper()
		for _, table := range []string{"session_claims", "check_claims", "snapshot_holds", "tickets"} {
			var n int
			must(t, conn.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
			if n != want {
				t.Errorf("%s has %d rows, want %d", table, n, want)
			}
		}
	}
	a.session()
	a.commit(id(1))
	for i, n := range both {
		user := []string{"ann", "bob"}[i]
		must(t, n.claims().Claim(t.Context(), "key", user))
		_, err := n.claims().EnterCheck(t.Context(), user)
		must(t, err)
		_, err = n.claims().Hold(t.Context(), id(1), "restored")
		must(t, err)
		_, err = n.Claims.AddTicket(t.Context(), sha256.Sum256([]byte(user)), user, now.Add(time.Duration(i)*24*time.Hour), now.Add(-time.Hour), 9)
		must(t, err)
	}
	b.claims().RemoveLeftovers(t.Context(), b.vault, now)
	rows(2)
	b.takeOver(a)
	b.claims().RemoveLeftovers(t.Context(), b.vault, now.Add(time.Hour))
	rows(1)
}

// The tickets of a session are the same on every node, and end with its salt.
func TestDerivedTickets(t *testing.T) {
	make := func(key, session, salt string) string {
		return access.DeriveSessionTickets([]byte(key), session, salt).Make(access.PurposeCDP, "key")
	}
	is := make("secret", "s1", "salt")
	if is != make("secret", "s1", "salt") {
		t.Error("another node makes another ticket")
	}
	for _, other := range []string{make("other", "s1", "salt"), make("secret", "s2", "salt"), make("secret", "s1", "other")} {
		if other == is {
			t.Error("two sessions have the same ticket")
		}
	}
}

// A node whose secrets differ is refused by name. A write-only node is not. A node that is late
// gets the time of a lease to renew its own.
func TestFingerprints(t *testing.T) {
	is := claims.Secrets{Identities: []string{"age1b", "age1a"}, Archive: []byte("archive"), Webhook: []byte("hook")}
	with := func(change func(*claims.Secrets)) claims.Secrets { s := is; change(&s); return s }
	other := with(func(s *claims.Secrets) { s.Archive = []byte("other") })
	const valid, late = time.Second, -time.Second
	for name, test := range map[string]struct {
		other claims.Secrets
		left  []time.Duration // at each look, the last one from then on; 0: it has no lease
		want  string
	}{
		"same":           {is, []time.Duration{valid}, ""},
		"other order":    {with(func(s *claims.Secrets) { s.Identities = []string{"age1a", "age1b"} }), []time.Duration{valid}, ""},
		"archive key":    {other, []time.Duration{valid}, "the archive key"},
		"identity":       {with(func(s *claims.Secrets) { s.Identities = []string{"age1c"} }), []time.Duration{valid}, "the identity"},
		"webhook secret": {with(func(s *claims.Secrets) { s.Webhook = nil }), []time.Duration{valid}, "the webhook secret"},
		"write-only":     {with(func(s *claims.Secrets) { s.Identities = nil }), []time.Duration{valid}, ""},
		"no lease":       {other, []time.Duration{0}, ""},
		"dead":           {other, []time.Duration{late}, ""},
		"taken over":     {other, []time.Duration{late, 0}, ""},
		"late":           {other, []time.Duration{late, late, valid}, "the archive key"},
	} {
		text, err := json.Marshal(map[string]any{"engines": []string{"shell"}, "fingerprints": claims.Of(test.other)})
		must(t, err)
		look := -1
		list := func(context.Context) ([]profiles.Node, error) {
			look = min(look+1, len(test.left)-1)
			n := profiles.Node{ID: "a", Facts: text, Left: test.left[look]}
			if n.Left != 0 {
				n.Number = 7
			}
			return []profiles.Node{n}, nil
		}
		err = claims.Of(is).Compare(t.Context(), "b", list, time.Millisecond)
		if test.want == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := test.want + " of this node differs from that of node a; give all nodes the same, by file or in the environment"; test.want != "" && fault.MessageOf(err) != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		if err := claims.Of(is).Compare(t.Context(), "a", list, time.Millisecond); err != nil {
			t.Errorf("%s: a node differs from its former daemon: %v", name, err)
		}
	}
}
