package browser

import (
	"net/netip"
	"testing"

	"github.com/stasisd/stasis/egress"
)

// Limits are equal if they allow the same networks, in any order.
func TestEgressEqual(t *testing.T) {
	networks := func(all ...string) (list []netip.Prefix) {
		for _, n := range all {
			list = append(list, netip.MustParsePrefix(n))
		}
		return list
	}
	a, b := networks("10.1.0.0/16", "10.2.0.0/16"), networks("10.2.0.0/16", "10.1.0.0/16", "10.1.0.0/16")
	one := Egress{Lists: []egress.List{{Allow: a}, {Deny: a}}, Private: a}
	for _, test := range []struct {
		name  string
		other Egress
		want  bool
	}{
		{"another order", Egress{Lists: []egress.List{{Deny: b}, {Allow: b, Deny: []netip.Prefix{}}}, Private: b}, true},
		{"without a list", Egress{Lists: []egress.List{{Deny: b}}, Private: b}, false},
		{"one more list", Egress{Lists: []egress.List{{Deny: b}, {Allow: b}, {Deny: networks("10.3.0.0/16")}}, Private: b}, false},
		{"one network less", Egress{Lists: []egress.List{{Deny: b}, {Allow: b}}, Private: b[:1]}, false},
		{"denied for allowed", Egress{Lists: []egress.List{{Allow: a, Deny: a}}, Private: a}, false},
	} {
		if one.Equal(test.other) != test.want || test.other.Equal(one) != test.want {
			t.Errorf("%s: equal is %v", test.name, !test.want)
		}
	}
	hosts := Egress{Lists: []egress.List{{AllowHosts: []string{"a.example", "*.b.example"}}}}
	if !hosts.Equal(Egress{Lists: []egress.List{{AllowHosts: []string{"*.b.example", "a.example"}}}}) {
		t.Error("hosts in another order differ")
	}
	for _, other := range []Egress{{}, {Lists: []egress.List{{AllowHosts: []string{"a.example"}}}}, {Lists: []egress.List{{DenyHosts: []string{"a.example", "*.b.example"}}}}} {
		if hosts.Equal(other) || other.Equal(hosts) {
			t.Errorf("%+v is the same as %+v", other, hosts)
		}
	}
	if !(Egress{}).Equal(Egress{Private: []netip.Prefix{}}) {
		t.Error("no limits differ from no limits")
	}
}
