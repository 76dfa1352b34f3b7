package webhook

import (
	"errors"
	"net/netip"
	"syscall"
)

// errRefused says that an address is not one that webhooks are sent to.
var errRefused = errors.New("the address is private, local or reserved, and webhooks are not sent there (--webhook-allow-private)")

// reserved are the networks, besides those that netip knows by name, that are
// nobody's on the internet, lead into others, or answer on the machine's own host.
var reserved = func() (all []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"168.63.129.16/32",                        // Azure's host
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", // IPv4 inside
		"2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10", "100::/64",
	} {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}()

// public reports whether an address is one that webhooks may be sent to.
func public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() { // loopback, link-local, multicast and none are not global
		return false
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// onlyPublic is a dialer's Control: it sees the address that is connected to,
// after names were resolved, so that no name can change between look and use.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !public(at.Addr()) {
		return errRefused
	}
	return nil
}
