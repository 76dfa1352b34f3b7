package access

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldbtest"
)

var admin = Caller{KeyID: "key-r", UserID: "default", AllUsers: true, Rights: []Right{RightUse, RightSecrets, RightAdmin}}

// newKeys returns the Keys of an empty database.
func newKeys(t *testing.T) *Keys {
	t.Helper()
	db := sqldbtest.Open(t, time.Now)
	return NewKeys(db.Keys, time.Now)
}

// There is one first key: another secret replaces it, and the old one is no longer
// accepted.
func TestFirstKeyIsReplaced(t *testing.T) {
	keys := newKeys(t)
	ctx := t.Context()
	for _, secret := range []string{"the first secret", "the first secret", "another secret"} {
		if err := keys.SetFirst(ctx, secret); err != nil {
			t.Fatal(err)
		}
		c, err := keys.Authenticate(ctx, secret, netip.Addr{})
		if err != nil || !c.May(Administer) || c.UserID != "default" {
			t.Fatalf("%q: %+v, %v", secret, c, err)
		}
	}
	_, err := keys.Authenticate(ctx, "the first secret", netip.Addr{})
	if !fault.Is(err, fault.Unauthorized) {
		t.Errorf("error %v, want Unauthorized", err)
	}
	if list, err := keys.Keys(ctx, admin); err != nil || len(list) != 1 {
		t.Errorf("%d keys, %v", len(list), err)
	}
}

// A created key authenticates, cannot delete itself, and is invalid once another key has
// deleted it.
func TestCreateAndDeleteKey(t *testing.T) {
	keys := newKeys(t)
	ctx := t.Context()
	k, secret, err := keys.CreateKey(ctx, admin, KeyOptions{Name: "ci", UserID: "alice", Rights: []Right{RightUse}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := keys.Authenticate(ctx, secret, netip.Addr{})
	if err != nil || c.UserID != "alice" || c.AllUsers {
		t.Fatalf("%+v, %v", c, err)
	}
	own := admin
	own.KeyID = k.ID
	if err := keys.DeleteKey(ctx, own, k.ID); !fault.Is(err, fault.InvalidField) {
		t.Errorf("error %v, want InvalidField", err)
	}
	if err := keys.DeleteKey(ctx, admin, k.ID); err != nil {
		t.Fatal(err)
	}
	_, err = keys.Authenticate(ctx, secret, netip.Addr{})
	if !fault.Is(err, fault.Unauthorized) {
		t.Errorf("error %v, want Unauthorized", err)
	}
}
