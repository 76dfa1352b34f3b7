package egress

import (
	"errors"
	"net"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Offsets in struct rtmsg (rtnetlink(7)), and its length.
const (
	routeFamily = 0
	routeLength = 1 // of the destination's prefix
	routeTable  = 4
	routeType   = 7
	routeHeader = 12
)

// OwnNetworks returns the addresses of this machine's interfaces, and the networks that its
// table of local routes leads to itself without any interface having them. Without either,
// the machine counts as having none.
func OwnNetworks() (all []netip.Prefix) {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			ip := p.Addr().Unmap().WithZone("")
			all = append(all, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	ask := make([]byte, routeHeader)
	ask[routeTable], ask[routeType] = unix.RT_TABLE_LOCAL, unix.RTN_LOCAL
	routes, _ := askRoutes(netlink.Dump, ask)
	for _, r := range routes {
		if len(r.Data) < routeHeader || r.Data[routeType] != unix.RTN_LOCAL || r.Data[routeTable] != unix.RT_TABLE_LOCAL {
			continue
		}
		ip := netip.IPv4Unspecified() // a route to everything has no address
		if r.Data[routeFamily] == unix.AF_INET6 {
			ip = netip.IPv6Unspecified()
		}
		attributes, err := netlink.NewAttributeDecoder(r.Data[routeHeader:])
		for err == nil && attributes.Next() {
			if to, ok := netip.AddrFromSlice(attributes.Bytes()); ok && attributes.Type() == unix.RTA_DST {
				ip = to
			}
		}
		if p, err := ip.Prefix(int(r.Data[routeLength])); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// ofMachine reports whether the kernel leads an address to this machine itself. No interface
// needs to have it ("ip route add local 203.0.113.0/24 dev lo"). An address that the kernel
// says nothing about counts as the machine's.
func ofMachine(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	ask := make([]byte, routeHeader)
	ask[routeFamily], ask[routeLength] = unix.AF_INET, byte(ip.BitLen())
	if ip.Is6() {
		ask[routeFamily] = unix.AF_INET6
	}
	to, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.RTA_DST, Data: ip.AsSlice()}})
	if err != nil {
		return true
	}
	routes, err := askRoutes(0, append(ask, to...))
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return false
	}
	return err != nil || len(routes) != 1 || len(routes[0].Data) < routeHeader || routes[0].Data[routeType] == unix.RTN_LOCAL
}

func askRoutes(flags netlink.HeaderFlags, data []byte) ([]netlink.Message, error) {
	conn, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if flags == netlink.Dump {
		// The kernel then sends only the routes that are asked for. Old kernels send all.
		_ = conn.SetOption(netlink.GetStrictCheck, true)
	}
	return conn.Execute(netlink.Message{Header: netlink.Header{Type: unix.RTM_GETROUTE, Flags: netlink.Request | flags}, Data: data})
}
