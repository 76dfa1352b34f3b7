package access

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldbtest"
)

// keysAt returns the Keys of an empty database, and their clock.
func keysAt(t *testing.T) (*Keys, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	db := sqldbtest.Open(t, func() time.Time { return now })
	return NewKeys(db.Keys, func() time.Time { return now }), &now
}

// A key stops working when it expires: its secret, its tickets, and what is open with it.
func TestKeyExpires(t *testing.T) {
	keys, now := keysAt(t)
	ctx := t.Context()
	if _, _, err := keys.CreateKey(ctx, admin, KeyOptions{Name: "late", ExpiresAt: now}); !fault.Is(err, fault.InvalidField) {
		t.Errorf("a key that has expired is made: %v", err)
	}
	later := now.Add(time.Hour)
	k, secret, err := keys.CreateKey(ctx, admin, KeyOptions{Name: "ci", UserID: "alice", Rights: []Right{RightUse}, ExpiresAt: &later})
	if err != nil || k.ExpiresAt == nil || !k.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Fatal(k, err)
	}
	c, err := keys.Authenticate(ctx, secret, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	ticket, _, err := keys.NewTicket(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	*now = now.Add(time.Hour - time.Millisecond) // the timer of what is open ends in a moment
	open, leave, err := keys.CallContext(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	<-open.Done()
	if err := OrKeyDeleted(open, context.Canceled); !errors.Is(err, errKeyExpired) {
		t.Errorf("a call that was open: %v", err)
	}
	*now = now.Add(time.Millisecond)
	if _, err := keys.Authenticate(ctx, secret, netip.Addr{}); !errors.Is(err, errKeyExpired) {
		t.Errorf("its secret: %v", err)
	}
	if _, err := keys.Caller(ctx, k.ID); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("its ID: %v", err)
	}
	if _, err := keys.RedeemTicket(ctx, ticket); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("its ticket: %v", err)
	}
	if _, _, err := keys.CallContext(ctx, c); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a later call: %v", err)
	}
}

func TestKeyNetworks(t *testing.T) {
	keys, _ := keysAt(t)
	ctx := t.Context()
	_, secret, err := keys.CreateKey(ctx, admin, KeyOptions{Name: "office", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}})
	if err != nil {
		t.Fatal(err)
	}
	for from, may := range map[string]bool{"192.0.2.7": true, "::ffff:192.0.2.7": true, "2001:db8:1::1": true, "192.0.3.1": false, "2001:db9::1": false, "": false} {
		addr, _ := netip.ParseAddr(from) // "" is an unknown address
		if _, err := keys.Authenticate(ctx, secret, addr); may != (err == nil) || !may && !fault.Is(err, fault.Forbidden) {
			t.Errorf("from %q: %v", from, err)
		}
	}
}

// A rotated key is the same key. Its former secret is valid for the overlap, and the one
// before that is not.
func TestRotateKey(t *testing.T) {
	keys, now := keysAt(t)
	ctx := t.Context()
	k, first, err := keys.CreateKey(ctx, admin, KeyOptions{Name: "ci", UserID: "alice", Rights: []Right{RightUse}})
	if err != nil {
		t.Fatal(err)
	}
	works := func(secrets map[string]bool) {
		t.Helper()
		for secret, want := range secrets {
			c, err := keys.Authenticate(ctx, secret, netip.Addr{})
			if want != (err == nil) || want && c.KeyID != k.ID || !want && !fault.Is(err, fault.Unauthorized) {
				t.Errorf("got %+v, %v; want a caller: %v", c, err, want)
			}
		}
	}
	rotated, second, err := keys.RotateKey(ctx, admin, k.ID, time.Hour)
	if err != nil || rotated.FormerSecretUntil == nil || !rotated.FormerSecretUntil.Equal(now.Add(time.Hour)) || second == first {
		t.Fatal(rotated, err)
	}
	works(map[string]bool{first: true, second: true})
	_, third, err := keys.RotateKey(ctx, admin, k.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	works(map[string]bool{first: false, second: true, third: true})
	*now = now.Add(time.Hour)
	works(map[string]bool{second: false, third: true})
	if list, err := keys.Keys(ctx, admin); err != nil || list[0].FormerSecretUntil != nil {
		t.Errorf("after the overlap: %+v, %v", list, err)
	}
	own := Caller{KeyID: k.ID, Rights: []Right{RightUse}}
	if _, _, err := keys.RotateKey(ctx, own, k.ID, 0); !fault.Is(err, fault.Forbidden) {
		t.Errorf("by itself: %v", err)
	}
	if err := keys.SetFirst(ctx, "the first secret"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := keys.RotateKey(ctx, admin, firstKey, 0); !fault.Is(err, fault.InvalidField) {
		t.Errorf("the first key: %v", err)
	}
	if _, _, err := keys.RotateKey(ctx, admin, "unknown", 0); !fault.Is(err, fault.KeyNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
}

// The last use is recorded to the minute, so that few calls write to the catalogue.
func TestLastUse(t *testing.T) {
	keys, now := keysAt(t)
	ctx := t.Context()
	_, secret, err := keys.CreateKey(ctx, admin, KeyOptions{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	used := func() *time.Time {
		list, err := keys.Keys(ctx, admin)
		if err != nil {
			t.Fatal(err)
		}
		return list[0].LastUsedAt
	}
	if at := used(); at != nil {
		t.Errorf("a new key was used at %v", at)
	}
	first := *now
	for _, step := range []struct {
		after time.Duration
		want  time.Time
	}{{0, first}, {useStep - 1, first}, {1, first.Add(useStep)}, {10 * time.Minute, first.Add(useStep + 10*time.Minute)}} {
		*now = now.Add(step.after)
		if _, err := keys.Authenticate(ctx, secret, netip.Addr{}); err != nil {
			t.Fatal(err)
		}
		if at := used(); at == nil || !at.Equal(step.want) {
			t.Errorf("after %v it was used at %v, want %v", step.after, at, step.want)
		}
	}
}
