package egress

import "net/netip"

// Refusal is a connection, a datagram or a name that was refused.
type Refusal struct {
	Protocol string         // "tcp", "udp", "dns" for a name, or the number of another protocol
	To       netip.AddrPort // its port is 0 for a protocol without ports, and for an address of a name
	Host     string         // the name; "" for a packet
}
