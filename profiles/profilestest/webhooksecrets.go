package profilestest

import (
	"fmt"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// testWebhookSecrets sets, replaces, reseals and deletes secrets of receivers.
func testWebhookSecrets(f *fixture) {
	const hook = "https://hooks.example/a"
	set := func(user, url, sealed string, at time.Time, overlap time.Duration) profiles.WebhookSecret {
		f.Helper()
		s, err := f.c.Receivers.SetWebhookSecret(f.ctx, profiles.WebhookSecret{UserID: user, URL: url, Sealed: []byte(sealed), CreatedAt: at}, at.Add(overlap))
		f.must(err)
		got, err := f.c.Receivers.WebhookSecret(f.ctx, user, url)
		f.must(err)
		f.same(got, s)
		return s
	}
	later := start.Add(time.Minute)
	bob := set("bob", hook, "of bob", start, time.Hour)
	f.same(bob, profiles.WebhookSecret{UserID: "bob", URL: hook, Sealed: []byte("of bob"), CreatedAt: start})
	set("alice", hook, "one", start, 0)
	two := set("alice", hook, "two", later, time.Hour)
	f.same(two, profiles.WebhookSecret{UserID: "alice", URL: hook, Sealed: []byte("two"), CreatedAt: later, Former: []byte("one"), FormerUntil: later.Add(time.Hour)})
	all := set("alice", "", "for all", start, 0)
	for user, want := range map[string][]profiles.WebhookSecret{"alice": {all, two}, "": {all, two, bob}, "carol": nil} {
		got, err := f.c.Receivers.WebhookSecrets(f.ctx, user)
		f.must(err)
		f.same(got, want)
	}

	// What has changed meanwhile is not resealed.
	resealed := two
	resealed.Sealed, resealed.Former = []byte("two again"), []byte("one again")
	f.must(f.c.Receivers.ResealWebhookSecret(f.ctx, two, resealed))
	three := set("alice", hook, "three", later, 0)
	if three.Former != nil || !three.FormerUntil.IsZero() {
		f.Errorf("without an overlap: %+v", three)
	}
	f.must(f.c.Receivers.ResealWebhookSecret(f.ctx, resealed, two))
	got, err := f.c.Receivers.WebhookSecret(f.ctx, "alice", hook)
	f.must(err)
	f.same(got, three)

	f.must(f.c.Receivers.DeleteWebhookSecret(f.ctx, "alice", hook))
	_, err = f.c.Receivers.WebhookSecret(f.ctx, "alice", hook)
	f.code(err, fault.NotFound)
	f.code(f.c.Receivers.DeleteWebhookSecret(f.ctx, "alice", hook), fault.NotFound)

	for n := range profiles.MaxWebhookSecrets {
		set("many", fmt.Sprint(hook, n), "x", start, 0)
	}
	_, err = f.c.Receivers.SetWebhookSecret(f.ctx, profiles.WebhookSecret{UserID: "many", URL: hook, Sealed: []byte("x"), CreatedAt: start}, start)
	f.code(err, fault.InvalidField)
	set("many", fmt.Sprint(hook, 1), "y", start, 0) // replaces one
}
