package egress

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestCheck(t *testing.T) {
	networks := Policy{Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd12::/32")}}
	for _, test := range []struct {
		addresses                 []string
		public, private, networks error // by policy
	}{
		{[]string{"8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "223.255.255.255"}, nil, nil, nil},
		{[]string{"10.1.2.3", "::ffff:10.1.255.255", "fd12::1"}, ErrNotPublic, nil, nil},
		{[]string{"127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "192.168.1.1", "::ffff:127.0.0.1", "::127.0.0.1",
			"64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1", "255.255.255.255", "240.0.0.1", "fec0::1", "198.18.0.1", "fd13::1", "100.64.0.1"}, ErrNotPublic, nil, ErrNotPublic},
		{[]string{"169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"}, ErrNever, ErrNever, ErrNever},
	} {
		for _, s := range test.addresses {
			for _, by := range []struct {
				name   string
				policy Policy
				want   error
			}{{"public", Policy{}, test.public}, {"private", Policy{Private: true}, test.private}, {"networks", networks, test.networks}} {
				if err := by.policy.Check(netip.MustParseAddr(s)); !errors.Is(err, by.want) || (err == nil) != (by.want == nil) {
					t.Errorf("%s, %s: got %v, want %v", s, by.name, err, by.want)
				}
			}
		}
	}
	if err := (Policy{Networks: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}}).Check(netip.MustParseAddr("169.254.169.254")); !errors.Is(err, ErrNever) {
		t.Errorf("a metadata address in an allowed network: %v", err)
	}
	if err := (Policy{Private: true}).Check(netip.Addr{}); err == nil {
		t.Error("no address is allowed")
	}
}

// A dialer checks what a name resolved to.
func TestControl(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if conn, err := (&net.Dialer{Control: Policy{}.Control}).DialContext(t.Context(), "tcp", "localhost:"+port); !errors.Is(err, ErrNotPublic) {
		t.Errorf("connected to %v, %v", conn, err)
	}
	conn, err := (&net.Dialer{Control: Policy{Private: true}.Control}).DialContext(t.Context(), "tcp", "localhost:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	own := Policy{Private: true, OwnPorts: []uint16{netip.MustParseAddrPort(l.Addr().String()).Port()}}
	if conn, err := (&net.Dialer{Control: own.Control}).DialContext(t.Context(), "tcp", "localhost:"+port); !errors.Is(err, ErrOwn) {
		t.Errorf("connected to the daemon's own port: %v, %v", conn, err)
	}
}

func TestLimitsCheck(t *testing.T) {
	networks := func(all ...string) (list []netip.Prefix) {
		for _, n := range all {
			list = append(list, netip.MustParsePrefix(n))
		}
		return list
	}
	l := Limits{Lists: []List{{Deny: networks("8.8.8.8/32")}, {Allow: networks("8.8.0.0/16", "10.0.0.0/8", "169.254.0.0/16")}}, Private: networks("10.1.0.0/16", "169.254.0.0/16")}
	for ip, want := range map[string]error{"8.8.4.4": nil, "8.8.8.8": errDenied, "::ffff:8.8.8.8": errDenied, "1.1.1.1": errDenied, "10.1.2.3": nil, "10.2.2.3": ErrNotPublic, "169.254.169.254": ErrNever} {
		if err := l.Check(Policy{}, netip.MustParseAddr(ip)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: got %v, want %v", ip, err, want)
		}
	}
}
