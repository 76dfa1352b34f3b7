package api

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

func TestAttempts(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAttempts(func() time.Time { return now })
	home, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	wrong := fault.New(fault.Unauthorized, "test", "")
	const chosen = "a key of an operator"
	allow := func(from netip.Prefix, secret string) error {
		leave, err := a.begin(from, secret)
		if err == nil {
			leave()
		}
		return err
	}
	a.recordSuccess(home, chosen)
	for i := range attemptsBurst {
		if err := allow(home, "a guess"); err != nil {
			t.Fatalf("attempt %d: %v", i, err)
		}
		if err := a.countFailure(home, wrong); !fault.Is(err, fault.Unauthorized) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	for name, err := range map[string]error{
		"another guess":                      allow(home, "another guess"),
		"a wrong ticket":                     a.countFailure(home, wrong),
		"a chosen key never seen from there": allow(home, "another chosen key"),
	} {
		if !fault.Is(err, fault.TooManyAttempts) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"a key that was right from there": allow(home, chosen),
		"a key that Stasis made":          allow(home, access.NewSecret()),
		"another address":                 allow(other, "a guess"),
		"what is right":                   a.countFailure(home, nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := allow(other, chosen); err != nil {
		t.Error(err)
	}
	now = now.Add(attemptsEvery)
	if err := allow(home, "a guess"); err != nil {
		t.Errorf("later: %v", err)
	}
	if err := a.countFailure(home, wrong); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("later: %v", err)
	}
	now = now.Add(trustPeriod)
	for range attemptsBurst {
		_ = a.countFailure(home, wrong) // the answers do not matter
	}
	if err := allow(home, chosen); !fault.Is(err, fault.TooManyAttempts) {
		t.Errorf("a day later: %v", err)
	}
}

// Simultaneous guesses are limited like consecutive ones.
func TestSimultaneousAttempts(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAttempts(func() time.Time { return now })
	home := netip.MustParsePrefix("192.0.2.1/32")
	_ = a.countFailure(home, fault.New(fault.Unauthorized, "test", "")) // the first wrong guess
	in := 0
	for range 3 * attemptsBurst {
		if _, err := a.begin(home, "a guess"); err == nil {
			in++
		}
	}
	if in != attemptsBurst-1 {
		t.Errorf("%d simultaneous guesses are looked up", in)
	}
}

// The memory for addresses is limited.
func TestAttemptsAreBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAttempts(func() time.Time { return now })
	for i := range 3 * maxAddresses {
		from := netip.MustParsePrefix(fmt.Sprintf("2001:db8:%x:%x::/64", i>>16, i&0xffff))
		_ = a.countFailure(from, fault.New(fault.Unauthorized, "test", ""))
		a.recordSuccess(from, "a key")
	}
	if len(a.left) > maxAddresses || len(a.right) > maxAddresses {
		t.Errorf("%d and %d addresses", len(a.left), len(a.right))
	}
}

func TestClientAddress(t *testing.T) {
	o := origins{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32")}}
	for _, c := range []struct{ remote, forwarded, want string }{
		{"192.0.2.1:5", "", "192.0.2.1/32"},
		{"192.0.2.1:5", "198.51.100.7", "192.0.2.1/32"}, // not from a trusted proxy
		{"10.1.2.3:5", "198.51.100.7", "198.51.100.7/32"},
		{"10.1.2.3:5", "203.0.113.9, 198.51.100.7", "198.51.100.7/32"}, // the client itself wrote the first address
		{"10.1.2.3:5", "198.51.100.7, 10.9.9.9", "198.51.100.7/32"},
		{"[::ffff:10.1.2.3]:5", "198.51.100.7", "198.51.100.7/32"},
		{"10.1.2.3:5", "", "10.1.2.3/32"},
		{"10.1.2.3:5", "nonsense", "10.1.2.3/32"},
		{"10.1.2.3:5", "10.4.4.4", "10.4.4.4/32"},
		{"[2001:db8:1:2:3:4:5:6]:5", "", "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:5", "", "fe80::/64"},
		{"10.1.2.3:5", "2001:db8:1:2:9::1", "2001:db8:1:2::/64"},
		{"@", "", "invalid Prefix"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := o.client(r).String(); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.remote, c.forwarded, got, c.want)
		}
	}
}
