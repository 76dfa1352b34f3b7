package session

import (
	"context"
	"errors"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot"
)

func of(n int64) *int64 { return &n }

// held returns how many of one thing count for a key.
func (r *rig) held(keyID string, name quota.Name) int64 {
	r.t.Helper()
	use, err := r.KeyUse(r.t.Context(), access.Key{ID: keyID})
	if err != nil {
		r.t.Fatal(err)
	}
	return use[name].Used
}

// The guests of a shared link use up their link's requests, not those of the key that made it,
// and do not learn whose quota it is.
func TestRatesOfGuests(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Quotas.Requests = of(3) })
	guest := alice
	guest.Link, guest.Quotas.Requests = "link-1", of(2)
	for range 2 {
		if states, err := r.TakeRequest(t.Context(), guest, false); err != nil || states != nil {
			t.Errorf("a guest: %v, %v", states, err)
		}
	}
	_, err := r.TakeRequest(t.Context(), guest, false)
	wantCode(t, err, fault.QuotaExceeded)
	if e := (quota.Exceeded{}); errors.As(err, &e) {
		t.Errorf("a guest learns of %+v", e)
	}
	if states, err := r.TakeRequest(t.Context(), alice, false); err != nil || states[0].Left != 2 {
		t.Errorf("the key of the link: %+v, %v", states, err)
	}
	guest.Link = "link-2"
	if _, err := r.TakeRequest(t.Context(), guest, false); err != nil {
		t.Errorf("a guest of another link: %v", err)
	}
}

// Keys for every user share no quota: each has its own, or the daemon's. With the right admin,
// only its own limits calls about keys and users.
func TestRatesOfKeysForEveryUser(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Quotas.Requests = of(2) })
	take := func(c access.Caller, managing bool) error {
		_, err := r.TakeRequest(t.Context(), c, managing)
		return err
	}
	viewer := access.Caller{KeyID: "key-v", UserID: admin.UserID, AllUsers: true, Rights: []access.Right{access.RightView}}
	for _, managing := range []bool{false, true} {
		if err := take(viewer, managing); err != nil {
			t.Fatal(err)
		}
	}
	for _, managing := range []bool{false, true} {
		err := take(viewer, managing)
		wantCode(t, err, fault.QuotaExceeded)
		if e := (quota.Exceeded{}); !errors.As(err, &e) || e.Of != quota.Key || e.ID != viewer.KeyID {
			t.Errorf("refused by %+v", e)
		}
	}
	for range 2 {
		if err := take(admin, false); err != nil {
			t.Errorf("another key: %v", err)
		}
	}
	wantCode(t, take(admin, false), fault.QuotaExceeded)
	for range 5 {
		if err := take(admin, true); err != nil {
			t.Errorf("an admin key manages keys: %v", err)
		}
	}
	bounded := admin
	bounded.KeyID, bounded.Quotas.Requests = "key-q", of(1)
	if err := take(bounded, true); err != nil {
		t.Error(err)
	}
	wantCode(t, take(bounded, true), fault.QuotaExceeded)
	own := alice
	own.UserID = admin.UserID
	if err := take(own, false); err != nil {
		t.Errorf("a key of the user with that ID: %v", err)
	}
}

// Without a quota of storage, a commit does not count what is stored.
func TestAdmissionWithoutQuota(t *testing.T) {
	r := newRig(t, nil)
	if admit, err := r.admission(t.Context(), alice.UserID, alice.KeyID); err != nil || admit != nil {
		t.Errorf("without quotas: %v, %v", admit != nil, err)
	}
	for name, quotas := range map[string]quota.Quotas{"snapshots": {Snapshots: of(1)}, "bytes": {Bytes: of(1)}} {
		r := newRig(t, func(c *Config) { c.Quotas = quotas })
		if admit, err := r.admission(t.Context(), alice.UserID, alice.KeyID); err != nil || admit == nil {
			t.Errorf("with a quota of %s: %v, %v", name, admit != nil, err)
		}
	}
}

// A request does not read its user's settings again, unless they have changed.
func TestQuotasAreCached(t *testing.T) {
	r := newRig(t, nil)
	take := func() ([]quota.Rate, error) { return r.TakeRequest(t.Context(), alice, false) }
	if states, err := take(); err != nil || len(states) > 0 {
		t.Fatalf("%+v, %v", states, err)
	}
	r.catalogue.fails(errBroken, "User")
	if _, err := r.TakeRequest(t.Context(), bob, false); !errors.Is(err, errBroken) {
		t.Errorf("a user who was not seen: %v", err)
	}
	if _, err := take(); err != nil {
		t.Errorf("the second request: %v", err)
	}
	r.catalogue.works()
	set := func(n int64) {
		t.Helper()
		if _, err := r.ChangeSettings(t.Context(), admin, alice.UserID, func(s settings.Settings) (settings.Settings, error) {
			s.Quotas = &quota.Quotas{Requests: of(n)}
			return s, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int64{5, 9} {
		set(n)
		if states, err := take(); err != nil || len(states) != 1 || states[0].Limit != n {
			t.Errorf("after a change to %d: %+v, %v", n, states, err)
		}
	}
}

// countedStore counts how often what is stored is summed up.
type countedStore struct {
	profiles.SnapshotStore
	sums int
}

func (s *countedStore) StoredByKey(ctx context.Context, id string) (profiles.Stored, error) {
	s.sums++
	return s.SnapshotStore.StoredByKey(ctx, id)
}

func TestKeyUseSumsOnce(t *testing.T) {
	r := newRig(t, nil)
	_, _ = r.saved(alice, filesystem)
	counted := &countedStore{SnapshotStore: r.catalogue.SnapshotStore}
	r.catalogue.SnapshotStore = counted
	use, err := r.KeyUse(t.Context(), access.Key{ID: alice.KeyID})
	if _, standbys := use[quota.Standbys]; err != nil || use[quota.Snapshots].Used != 1 || use[quota.Bytes].Used == 0 || standbys {
		t.Errorf("%+v, %v", use, err)
	}
	if counted.sums != 1 {
		t.Errorf("what the key has stored was summed up %d times", counted.sums)
	}
}

// A session that another key resumes counts for the key that made it, as its snapshots do.
func TestResumeCountsForTheMaker(t *testing.T) {
	r := newRig(t, nil)
	k, _, err := r.apiKeys.CreateKey(t.Context(), admin, access.KeyOptions{Name: "maker", UserID: "alice", Rights: alice.Rights, Quotas: quota.Quotas{Snapshots: of(2)}})
	if err != nil {
		t.Fatal(err)
	}
	maker := access.Caller{KeyID: k.ID, UserID: k.UserID, Rights: k.Rights, Quotas: k.Quotas}
	id, _ := r.saved(maker, filesystem)
	if _, err := r.resumes(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	if made, by := r.held(k.ID, quota.Sessions), r.held(alice.KeyID, quota.Sessions); made != 1 || by != 0 {
		t.Errorf("%d sessions count for the maker, %d for the resumer", made, by)
	}
	r.end(alice, id, none)
	if _, err := r.apiKeys.ChangeQuotas(t.Context(), admin, k.ID, func(q quota.Quotas) (quota.Quotas, error) { return quota.Quotas{Snapshots: of(1)}, nil }); err != nil {
		t.Fatal(err)
	}
	_, err = r.resumes(t.Context(), alice, id)
	if e := (quota.Exceeded{}); !errors.As(err, &e) || e.Name != quota.Snapshots || e.ID != k.ID {
		t.Errorf("beyond the maker's quota: %v", err)
	}
}

// A create whose client has no socket in the quota makes no session. The socket of one that is
// made counts once, and until the session ends if no client takes it.
func TestConnectBeyondSockets(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Quotas.Sockets = of(1) })
	connects := func(c *request.Create) { *c = c.Connecting() }
	sockets := func() int64 { return r.held(alice.KeyID, quota.Sockets) }
	refused := func(sessions int) {
		t.Helper()
		_, err := r.Create(t.Context(), alice, newCreate(connects))
		wantCode(t, err, fault.QuotaExceeded)
		if page, _, err := r.List(t.Context(), alice, request.List{Limit: 10}); err != nil || len(page) != sessions {
			t.Errorf("%d sessions have a record, not %d; %v", len(page), sessions, err)
		}
		if n := r.held(alice.KeyID, quota.Sessions); sockets() != 1 || n != 1 {
			t.Errorf("%d sockets and %d sessions count", sockets(), n)
		}
	}
	id := r.create(alice, connects).ID
	refused(1)
	leave, err := r.Attach(t.Context(), alice, id)
	if err != nil {
		t.Fatal(err)
	}
	refused(1)
	if _, err := r.Attach(t.Context(), alice, id); !fault.Is(err, fault.QuotaExceeded) {
		t.Errorf("a second client: %v", err)
	}
	leave()
	if n := sockets(); n != 0 {
		t.Errorf("%d sockets count", n)
	}
	r.end(alice, id, none)
	id = r.create(alice, connects).ID
	refused(2)
	r.end(alice, id, none)
	if n := sockets(); n != 0 {
		t.Errorf("%d sockets count after the end", n)
	}
}

// A Chrome that reads a snapshot for an export counts like a session.
func TestExportTakesQuota(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Quotas = quota.Quotas{Sessions: of(0)} })
	_, _, err := r.ForLibrary().ReadStorage(t.Context(), alice, alice.UserID, snapshot.Snapshot{})
	wantCode(t, err, fault.QuotaExceeded)
}
