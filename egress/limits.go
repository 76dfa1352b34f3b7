package egress

import "net/netip"

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
