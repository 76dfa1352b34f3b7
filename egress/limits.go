package egress

import (
	"errors"
	"net/netip"
	"syscall"
	"time"
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
	// Resolver is a port of 127.0.0.1 and ::1 at which a resolver answers the session's DNS
	// queries. It looks up only names that the lists allow. 0: there is none.
	Resolver uint16
}

// AdmittedFor is how long new connections are allowed to an address that a [Limits.Resolver]
// has found. Chrome keeps an answer for a minute, and a pause of its processes may come on top.
const AdmittedFor = 5 * time.Minute

// errDenied is the error of an address that a session's lists do not allow.
var errDenied = errors.New("the egress of the session or of its user does not allow the address")

// Check returns nil if the lists and the policy allow an address.
func (l Limits) Check(p Policy, ip netip.Addr) error { return l.check(p, ip, false) }

// CheckNamed is [Limits.Check] for an address of a name that [Limits.AllowsName] allows.
func (l Limits) CheckNamed(p Policy, ip netip.Addr) error { return l.check(p, ip, true) }

func (l Limits) check(p Policy, ip netip.Addr, named bool) error {
	ip = ip.Unmap().WithZone("")
	if err := l.checkLists(ip, named); err != nil {
		return err
	}
	if err := p.Check(ip); !errors.Is(err, ErrNotPublic) || !in(ip, l.Private) {
		return err
	}
	return nil
}

// checkLists returns nil if the lists allow an address. named: it is that of an allowed name.
func (l Limits) checkLists(ip netip.Addr, named bool) error {
	for _, list := range l.Lists {
		only := len(list.Allow) > 0 && len(list.AllowHosts) == 0 || len(list.AllowHosts) > 0 && !named
		if in(ip, list.Deny) || only && !in(ip, list.Allow) {
			return errDenied
		}
	}
	return nil
}

// Control returns the Control function of a [net.Dialer] that connects to a host only where
// the lists and the policy allow it.
func (l Limits) Control(p Policy, host string) func(network, address string, conn syscall.RawConn) error {
	_, err := netip.ParseAddr(host)
	named := err != nil && l.AllowsName(host)
	return func(network, address string, conn syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil {
			err = l.check(p, at.Addr(), named)
		}
		if err != nil {
			return err
		}
		return p.checkOwn(at)
	}
}

// List allows and denies networks and hosts. Hosts are as [ParseHost] returns them.
type List struct {
	Allow      []netip.Prefix `json:"allow,omitempty"`       // if there are some, or some of
	AllowHosts []string       `json:"allow_hosts,omitempty"` // these, only these together
	Deny       []netip.Prefix `json:"deny,omitempty"`
	DenyHosts  []string       `json:"deny_hosts,omitempty"`
}

// Empty reports whether the list allows everything.
func (l List) Empty() bool {
	return len(l.Allow)+len(l.AllowHosts)+len(l.Deny)+len(l.DenyHosts) == 0
}

// Empty reports whether there are no limits.
func (l Limits) Empty() bool { return len(l.Lists) == 0 && len(l.Private) == 0 && l.Proxy == nil }

// Proxy is the daemon's own end of the way to a session's proxy.
type Proxy struct {
	At netip.AddrPort // the session may connect to it, whatever its policy and lists say
	// Only: the session may connect to nothing else. Except, with Loopback, to what its
	// policy and lists allow of loopback.
	Only, Loopback bool
}
