package sqldb_test

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/profilestest"
	"github.com/stasisd/stasis/profiles/sqldb"
)

// openLong opens a database as a node with the usual lease.
func openLong(t *testing.T, url, id string) (*sqldb.DB, profiles.Node) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: url, Now: time.Now, Node: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, join(t, db, id)
}

func TestWaiting(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		profilestest.RunWaiting(t, func(*testing.T) (one, other profiles.WaitingStore) {
			m := profilestest.NewMemoryWaiting(time.Now)
			return m, m
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		profilestest.RunWaiting(t, func(t *testing.T) (one, other profiles.WaitingStore) {
			url := postgresURL(t)
			a, _ := openLong(t, url, "a")
			b, _ := openLong(t, url, "b")
			return a.Claims, b.Claims
		})
	})
}

// The creates of a node whose lease has ended wait no more, and are removed after it was taken
// over. The node cannot begin to wait under its old lease.
func TestWaitingOfLostNodes(t *testing.T) {
	url := postgresURL(t)
	a := openNode(t, url)
	lease := join(t, a, "a")
	b, _ := openLong(t, url, "b")
	begin := func(on *sqldb.DB, id string) error {
		_, err := on.Claims.BeginWaiting(t.Context(), profiles.WaitingCreate{ID: id, UserID: id, KeyID: "k"}, 0)
		return err
	}
	waiting := func() (ids string) {
		t.Helper()
		all, err := b.Claims.Waiting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			ids += w.ID
		}
		return ids
	}
	for on, id := range map[*sqldb.DB]string{a: "1", b: "2"} {
		if err := begin(on, id); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the create of the node whose lease has ended is not listed", func() bool { return waiting() == "2" }) // no node has taken over
	takeOver(t, b, lease)
	wantCode(t, begin(a, "3"), fault.NodeLost)
	_, err := a.Claims.TakeTurn(t.Context(), "1", 0)
	wantCode(t, err, fault.NodeLost)
	if err := b.Claims.RemoveVoid(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	join(t, a, "a")
	if got := waiting(); got != "2" {
		t.Errorf("waiting: %q", got)
	}
}

// The sessions of a user and of a key are counted if quotas limit them.
func TestWaitingCountsSessions(t *testing.T) {
	url := postgresURL(t)
	a, _ := openLong(t, url, "a")
	b, _ := openLong(t, url, "b")
	admit := func(profiles.QuotaUse) error { return nil }
	for id, of := range map[string]struct {
		on        *sqldb.DB
		user, key string
	}{"s1": {a, "ann", "k"}, "s2": {b, "ann", "l"}, "s3": {b, "bob", "k"}} {
		if _, err := of.on.Claims.ClaimSession(t.Context(), id, of.key); err != nil {
			t.Fatal(err)
		}
		if err := of.on.Claims.CountSession(t.Context(), id, profiles.QuotaCount{UserID: of.user, KeyID: of.key, OfUser: true, OfKey: true}, admit); err != nil {
			t.Fatal(err)
		}
	}
	most := int64(1)
	for _, w := range []profiles.WaitingCreate{{ID: "both", UserID: "ann", KeyID: "k", MostOfUser: &most, MostOfKey: &most}, {ID: "key", UserID: "ann", KeyID: "l", MostOfKey: &most}, {ID: "none", UserID: "ann", KeyID: "k"}} {
		if _, err := b.Claims.BeginWaiting(t.Context(), w, 0); err != nil {
			t.Fatal(err)
		}
	}
	all, err := a.Claims.Waiting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][2]int64{{2, 2}, {0, 1}, {0, 0}} {
		if got := [2]int64{all[i].OfUser, all[i].OfKey}; got != want {
			t.Errorf("%s: %v sessions of its user and key; want %v", all[i].ID, got, want)
		}
	}
}
