package session

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events/webhook"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

var behindProxy = state.Overrides{Timezone: "Asia/Tokyo",
	Proxy: &state.Proxy{Server: "http://proxy.example:3128", Username: "u", Password: "hunter2hunter2"}}

// A rescue after a kill of the daemon has the session's proxy. The catalogue contains no
// plain password.
func TestRescueKeepsOverrides(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { c.Overrides = behindProxy }).ID
	rec, err := r.catalogue.Session(t.Context(), id)
	if err != nil || len(rec.Sealed) == 0 || bytes.Contains(rec.Sealed, []byte("hunter2")) {
		t.Fatalf("the record has %q, %v", rec.Sealed, err)
	}
	r.kill()
	r.Service = r.daemon(nil)
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	if rec, err = r.catalogue.Session(t.Context(), id); err != nil || len(rec.Sealed) > 0 {
		t.Errorf("an ended session's record has %q, %v", rec.Sealed, err)
	}
	again := r.create(alice, func(c *request.Create) { c.FromSession = id })
	if diff := cmp.Diff(behindProxy, r.browsers.last().restored.Overrides); diff != "" {
		t.Errorf("restored with (-want +got):\n%s", diff)
	}
	r.end(alice, again.ID, none)
}

// If the current identity cannot unseal the overrides, the report says so, and the user
// data directory is rescued.
func TestRescueWithUnreadableOverrides(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { c.Overrides = behindProxy }).ID
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	r.kill()
	r.keys = snapshot.NewKeys(other, [32]byte{1})
	r.Service = r.daemon(nil)
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	info := r.create(alice, func(c *request.Create) { c.FromSession = id })
	if warnings := strings.Join(info.Restored.Warnings, "\n"); !strings.Contains(warnings, "overrides") || !strings.Contains(warnings, "proxy") {
		t.Errorf("warnings: %s", warnings)
	}
	r.end(alice, info.ID, none)
}

// A session without overrides has nothing sealed.
func TestNothingSealedWithoutOverrides(t *testing.T) {
	r := newRig(t, nil)
	rec, err := r.catalogue.Session(t.Context(), r.create(alice, nil).ID)
	if err != nil || rec.Sealed != nil || rec.Status == profiles.StatusError {
		t.Errorf("%+v, %v", rec, err)
	}
}

// What the catalogue keeps sealed follows a key rotation, also a second time: of sessions,
// their events and secrets of webhooks.
func TestRewrapCatalogue(t *testing.T) {
	r := newRig(t, nil)
	other := r.create(alice, nil).ID // has only its create's options sealed
	r.browsers.last().emit(browser.EventNavigation, map[string]any{"url": "https://a.example/?token=abc"})
	r.browsers.last().emit(browser.EventNavigation, map[string]any{"url": "https://b.example/"})
	runs, err := r.Runs(t.Context(), alice, other)
	if err != nil {
		t.Fatal(err)
	}
	id := r.create(alice, func(c *request.Create) { c.Overrides = behindProxy }).ID
	r.browsers.last().emit(browser.EventNavigation, map[string]any{"url": "https://c.example/"})
	own, err := r.Runs(t.Context(), alice, id)
	if err != nil {
		t.Fatal(err)
	}
	sealed := func() []byte {
		rec, err := r.catalogue.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return rec.Sealed
	}
	old := sealed()
	hooked := webhook.NewReceivers(webhook.ReceiversConfig{Store: r.catalogue, Sealer: snapshot.NewVault(r.store, r.keys, snapshot.Options{Now: r.clock.now}), Now: r.clock.now})
	secrets := []webhook.Secret{webhook.NewSecret(), webhook.NewSecret()}
	for _, secret := range secrets {
		if _, _, err := hooked.SetSecret(t.Context(), alice, webhook.SecretOptions{UserID: alice.UserID, Secret: secret, Overlap: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	after, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	// Here the first identity gets a second recipient.
	retired := r.keys.IdentityRecipients()
	out, err := library.RewrapCatalogue(t.Context(), r.catalogue, r.catalogue, r.catalogue, snapshot.NewVault(r.store, snapshot.NewKeys(after, [32]byte{1}), snapshot.Options{Now: r.clock.now}), retired)
	var left []string
	for _, one := range out.Skipped {
		left = append(left, one.Key)
	}
	want := []string{"session " + id, "session " + other, "2 events of run " + runs[0].ID, "1 events of run " + own[0].ID, "a webhook secret of owner " + profiles.OwnerOf(alice.UserID)}
	if diff := cmp.Diff(want, left); diff != "" || err != nil || out.Opened+out.Sessions+out.Events+out.Secrets > 0 || !bytes.Equal(old, sealed()) {
		t.Errorf("with another identity: %+v, %v; left (-want +got):\n%s", out, err, diff)
	}
	more := snapshot.NewVault(r.store, snapshot.NewKeys(r.identity, [32]byte{1}, after.Recipient()), snapshot.Options{Now: r.clock.now})
	for _, want := range []library.RewrapResult{{Sessions: 2, Events: 3, Secrets: 1, Opened: 6}, {Opened: 6}} {
		out, err := library.RewrapCatalogue(t.Context(), r.catalogue, r.catalogue, r.catalogue, more, nil)
		if diff := cmp.Diff(want, out); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
	}
	r.kill()
	r.keys = snapshot.NewKeys(after, [32]byte{1})
	hooked = webhook.NewReceivers(webhook.ReceiversConfig{Store: r.catalogue, Sealer: snapshot.NewVault(r.store, r.keys, snapshot.Options{Now: r.clock.now}), Now: r.clock.now})
	if got, err := hooked.For(t.Context(), profiles.Delivery{Notice: profiles.Notice{URL: "https://hooks.example"}, UserID: alice.UserID}); err != nil || !cmp.Equal(got, []webhook.Secret{secrets[1], secrets[0]}) {
		t.Errorf("after the rotation the secrets are %v, %v", got, err)
	}
	r.Service = r.daemon(nil)
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	again := r.create(alice, func(c *request.Create) { c.FromSession = id })
	if diff := cmp.Diff(behindProxy, r.browsers.last().restored.Overrides); diff != "" {
		t.Errorf("restored with (-want +got):\n%s", diff)
	}
	r.end(alice, again.ID, none)
	page, err := r.RunEvents(t.Context(), admin, other, runs[0].ID, 1, 2, true)
	if err != nil || len(page.Events) != 2 || string(page.Events[0].Data) != `{"url":"https://a.example/?token=abc"}` {
		t.Errorf("earlier events: %+v, %v", page.Events, err)
	}
	r.resumed(alice, id) // only the new identity can unseal the create's options
	if diff := cmp.Diff(behindProxy, r.browsers.last().options.Overrides); diff != "" {
		t.Errorf("resumed with (-want +got):\n%s", diff)
	}
}

// A daemon without an identity can save. It refuses a restore before it starts a Chrome,
// and names the identity that is needed.
func TestWithoutIdentity(t *testing.T) {
	r := newRig(t, nil)
	r.keys = snapshot.NewKeys(nil, [32]byte{1}, r.identity.Recipient())
	r.Service = r.daemon(nil)
	id := r.create(alice, func(c *request.Create) { c.Overrides = behindProxy }).ID
	r.end(alice, id, filesystem)
	began := len(r.browsers.all())
	_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromSession = id }))
	wantCode(t, err, fault.IdentityMissing)
	if !strings.Contains(fault.MessageOf(err), r.identity.Recipient().String()) || len(r.browsers.all()) != began {
		t.Errorf("%v; %d Chromes, before %d", err, len(r.browsers.all()), began)
	}
}
