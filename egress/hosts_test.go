package egress

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{
		"example.org": "example.org", "Example.ORG.": "example.org", "*.Example.org": "*.example.org", "localhost": "localhost", "*.localhost": "*.localhost",
		"bücher.example": "xn--bcher-kva.example", "*.BÜCHER.example": "*.xn--bcher-kva.example", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"faß.example": "xn--fa-hia.example", "例え。テスト": "xn--r8jz45g.xn--zckzah", "a_b.example": "a_b.example", "1.2.3.4.example": "1.2.3.4.example", "*.com": "*.com",
	} {
		if got, err := ParseHost(text); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "*", "*.", "*.*.example", "a.*.example", "*example.org", "a..example", ".example", "example.org..", "exa mple.org", "http://example.org", "example.org:80", "example.org/x",
		"a@b.example", "1.2.3", "1.2.3.4", "0x7f.1", "a.0x7", "2130706433", "[::1]", "a%2eb.example", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "example", "a\x00.example"} {
		if got, err := ParseHost(text); err == nil {
			t.Errorf("%q is taken, as %q", text, got)
		}
	}
}

func TestMatches(t *testing.T) {
	hosts := []string{"example.org", "*.site.example"}
	for name, want := range map[string]bool{
		"example.org": true, "EXAMPLE.org.": true, "a.example.org": false, "xexample.org": false, "site.example": false, "a.site.example": true,
		"a.b.SITE.example.": true, ".site.example": true, "asite.example": false, "": false, "example.org.evil.example": false,
	} {
		if got := Matches(name, hosts); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// Records and settings keep the entries.
func TestEntries(t *testing.T) {
	var entries []Entry
	const text = `["10.0.0.0/8","*.example.org","192.0.2.1/32"]`
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		t.Fatal(err)
	}
	if raw, err := json.Marshal(entries); err != nil || string(raw) != text {
		t.Errorf("got %s, %v", raw, err)
	}
	want := List{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")}, AllowHosts: []string{"*.example.org"}}
	if got := NewList(entries, nil); !reflect.DeepEqual(got, want) || got.Empty() {
		t.Errorf("got %+v", got)
	}
	if err := json.Unmarshal([]byte(`["a b"]`), &entries); err == nil {
		t.Error("a bad entry is taken")
	}
	if (List{DenyHosts: []string{"a.example"}}).Empty() {
		t.Error("a list that denies a host is empty")
	}
}

// Each list must allow a name, and the address of an allowed name.
func TestLimitsWithHosts(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	l := Limits{Lists: []List{{AllowHosts: []string{"*.example", "b.test"}, Allow: networks}, {DenyHosts: []string{"denied.example"}, Deny: []netip.Prefix{netip.MustParsePrefix("8.8.8.8/32")}}}}
	for name, want := range map[string]bool{"a.example": true, "b.test": true, "denied.example": false, "c.test": false} {
		if got := l.AllowsName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, test := range []struct {
		ip           string
		plain, named bool
	}{{"9.9.9.9", false, true}, {"10.1.2.3", true, true}, {"8.8.8.8", false, false}, {"127.0.0.1", true, true}, {"169.254.169.254", false, false}} {
		policy, ip := Policy{Private: true}, netip.MustParseAddr(test.ip)
		if test.ip == "127.0.0.1" {
			test.plain = false
			if l.CheckNamed(Policy{}, ip) == nil {
				t.Error("a name leads to a private address")
			}
		}
		if got := l.Check(policy, ip) == nil; got != test.plain {
			t.Errorf("%s: %v", ip, got)
		}
		if got := l.CheckNamed(policy, ip) == nil; got != test.named {
			t.Errorf("%s of a name: %v", ip, got)
		}
	}
	for host, want := range map[string]bool{"a.example": true, "c.test": false, "10.1.2.3": true, "9.9.9.9": false, "::ffff:10.1.2.3": true, "::1": false} {
		if got := l.AllowsThroughProxy(host); got != want {
			t.Errorf("%s through a proxy: %v", host, got)
		}
	}
	for host, want := range map[string]bool{"b.test": true, "c.test": false, "10.1.2.3": false} { // the address is not in the networks
		if got := l.Control(Policy{}, host)("tcp", "9.9.9.9:80", nil) == nil; got != want {
			t.Errorf("a proxy at %s: %v", host, got)
		}
	}
	if !l.HasHosts() || (Limits{Lists: []List{{Allow: networks}}}).HasHosts() {
		t.Error("HasHosts is wrong")
	}
}
