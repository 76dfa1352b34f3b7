package egress

import (
	"errors"
	"net/netip"
	"syscall"
)

// Limits are what the browser of one session may connect to, within what the [Policy]
// allows.
type Limits struct {
	// Lists must all allow an address.
	Lists []List
	// Private are networks that the session may connect to although they are not public.
	Private []netip.Prefix
	// Proxy is the way to the session's proxy; nil: it has none.
	Proxy *Proxy
}

// errDenied is the error of an address that a session's lists do not allow.
var errDenied = errors.New("the egress of the session or of its user does not allow the address")

// Check returns nil if the lists and the policy allow an address.
func (l Limits) Check(p Policy, ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	for _, list := range l.Lists {
		if in(ip, list.Deny) || len(list.Allow) > 0 && !in(ip, list.Allow) {
			return errDenied
		}
	}
	if err := p.Check(ip); !errors.Is(err, ErrNotPublic) || !in(ip, l.Private) {
		return err
	}
	return nil
}

// Control returns the Control function of a [net.Dialer] that connects only where the lists
// and the policy allow it.
func (l Limits) Control(p Policy) func(network, address string, conn syscall.RawConn) error {
	return func(network, address string, conn syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil {
			err = l.Check(p, at.Addr())
		}
		if err != nil {
			return err
		}
		return p.checkOwn(at)
	}
}

// List allows and denies networks.
type List struct {
	Allow []netip.Prefix `json:"allow,omitempty"` // if there are some, only these
	Deny  []netip.Prefix `json:"deny,omitempty"`
}

// Empty reports whether the list allows everything.
func (l List) Empty() bool { return len(l.Allow) == 0 && len(l.Deny) == 0 }

// Empty reports whether there are no limits.
func (l Limits) Empty() bool { return len(l.Lists) == 0 && len(l.Private) == 0 && l.Proxy == nil }

// Proxy is the daemon's own end of the way to a session's proxy.
type Proxy struct {
	At netip.AddrPort // the session may connect to it, whatever its policy and lists say
	// Only: the session may connect to nothing else. Except, with Loopback, to what its
	// policy and lists allow of loopback.
	Only, Loopback bool
}
