package webhook

import (
	"errors"
	"net/netip"
	"syscall"
)

// errRefused is the error of an address that webhooks must not be sent to.
var errRefused = errors.New("the address is private, local or reserved; webhooks are sent there only with --webhook-allow-private")

// reserved lists the networks that netip has no name for and that must not be reached.
// They are not public, lead into other networks, or reach the machine's own host.
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

// public reports whether webhooks may be sent to an address.
func public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() { // this also excludes loopback, link-local, multicast and unspecified addresses
		return false
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// onlyPublic is a dialer's Control. It checks the address that is connected to, after
// names were resolved, so a name cannot change between check and use.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !public(at.Addr()) {
		return errRefused
	}
	return nil
}
