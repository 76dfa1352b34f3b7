package api

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

// Networks are kept in one form: masked, IPv4 as IPv4, single addresses as networks.
func TestNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1/32", "192.0.2.7/24": "192.0.2.0/24", "::ffff:10.0.0.1": "10.0.0.1/32", "2001:db8::1/32": "2001:db8::/32", "0.0.0.0/0": "0.0.0.0/0", "::1": "::1/128",
	} {
		if err := areNetworks("x", []string{text}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := networks([]string{text})[0]; got != netip.MustParsePrefix(want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "a.example", "*.example", "10.0.0.0/33", "::ffff:10.0.0.0/104", "fe80::1%eth0", "10.0.0.0/8 "} {
		if err := areNetworks("x", []string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if err := areNetworks("x", make([]string, maxNetworks+1)); err == nil {
		t.Error("there is no limit")
	}
	if err := areNetworksOrHosts("x", []string{"10.0.0.1", "a.example", "*.B.example."}); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "*", "http://a.example", "a.example:80", "10.0.0.0/33", "1.2.3"} {
		if err := areNetworksOrHosts("x", []string{"a.example", text}); err == nil || !strings.Contains(err.Error(), "x[1]") {
			t.Errorf("%q: %v", text, err)
		}
	}
	body := settingsBody{Egress: &userEgressBody{egressBody: egressBody{Allow: []string{"*.B.example.", "10.0.0.1"}, Deny: []string{"10.0.0.1"}}}}
	set, err := body.settings()
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := json.Marshal(set.Egress); err != nil || string(raw) != `{"allow":["*.b.example","10.0.0.1/32"],"deny":["10.0.0.1/32"],"allow_private":[]}` {
		t.Errorf("the setting is %s, %v", raw, err)
	}
}
