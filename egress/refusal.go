package egress

import "net/netip"

// Refusal is a connection or a datagram that was refused.
type Refusal struct {
	Protocol string         // "tcp", "udp", or the number of another protocol
	To       netip.AddrPort // its port is 0 for a protocol without ports
}
