// Package egress decides which network addresses may be connected to on behalf of callers:
// by their browsers, the relays of their proxies, and their webhooks.
//
// Addresses are checked after names were resolved, so a name cannot change between check
// and use.
package egress

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
)

// Policy says which addresses may be connected to. The zero value allows public addresses
// only. Link-local and metadata addresses are never allowed.
type Policy struct {
	// Private also allows loopback, private and reserved addresses.
	Private bool
	// Networks are allowed although they are not public.
	Networks []netip.Prefix
	// OwnPorts are TCP ports of the daemon. They are never allowed at an address that the
	// kernel leads to this machine.
	OwnPorts []uint16
}

// Errors of [Policy.Check].
var (
	ErrNever     = errors.New("the address is link-local or a metadata address; it is never connected to")
	ErrOwn       = errors.New("the address is the daemon's own; it is never connected to")
	ErrNotPublic = errors.New("the address is private, local or reserved; --allow-private allows it")
)

// Check returns nil if the address may be connected to, else [ErrNever] or [ErrNotPublic].
func (p Policy) Check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	switch {
	case !ip.IsValid() || in(ip, never):
		return ErrNever
	case p.Private || in(ip, p.Networks) || !in(ip, notPublic):
		return nil
	}
	return ErrNotPublic
}

// Control is the Control function of a [net.Dialer] that connects only where the policy
// allows it.
func (p Policy) Control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err == nil {
		err = p.Check(at.Addr())
	}
	if err != nil {
		return err
	}
	return p.checkOwn(at)
}

func (p Policy) checkOwn(at netip.AddrPort) error {
	if slices.Contains(p.OwnPorts, at.Port()) && ofMachine(at.Addr()) {
		return ErrOwn
	}
	return nil
}

func in(ip netip.Addr, networks []netip.Prefix) bool {
	for _, n := range networks {
		if n.Contains(ip) {
			return true
		}
	}
	return false
}
