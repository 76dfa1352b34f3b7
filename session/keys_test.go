package session

import (
	"testing"

	"github.com/stasisd/stasis/fault"
)

// There is one key that the daemon begins with: another secret takes its
// place, and the one before lets nobody in any more.
func TestFirstKeyIsReplaced(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	for _, secret := range []string{"the first secret", "the first secret", "another secret"} {
		if err := r.FirstKey(ctx, secret); err != nil {
			t.Fatal(err)
		}
		c, err := r.Authenticate(ctx, secret)
		if err != nil || !c.may(administer) || c.UserID != "default" {
			t.Fatalf("%q: %+v, %v", secret, c, err)
		}
	}
	_, err := r.Authenticate(ctx, "the first secret")
	wantCode(t, err, fault.Unauthorized)
	if keys, err := r.Keys(ctx, admin); err != nil || len(keys) != 1 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

// A key is told once, is withdrawn by another, and cannot withdraw itself.
func TestKeysComeAndGo(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	k, secret, err := r.CreateKey(ctx, admin, "ci", "alice", false, alice.Rights)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Authenticate(ctx, secret)
	if err != nil || c.UserID != "alice" || c.AllUsers {
		t.Fatalf("%+v, %v", c, err)
	}
	own := admin
	own.KeyID = k.ID
	wantCode(t, r.DeleteKey(ctx, own, k.ID), fault.InvalidField)
	if err := r.DeleteKey(ctx, admin, k.ID); err != nil {
		t.Fatal(err)
	}
	_, err = r.Authenticate(ctx, secret)
	wantCode(t, err, fault.Unauthorized)
}
