package egress

import (
	"errors"
	"net/netip"
	"slices"
)

// Never returns the networks that are never connected to. Cloud providers answer there
// with credentials of the machine to every client.
func Never() []netip.Prefix { return slices.Clone(never) }

// NotPublic returns the networks that a [Policy] without Private does not allow: the
// addresses that the registries of IANA call not globally reachable (RFC 6890), and those
// that contain an IPv4 address, which may be any.
func NotPublic() []netip.Prefix { return slices.Clone(notPublic) }

// Neither list is modified.
var (
	never = prefixes(
		"169.254.0.0/16", "fe80::/10", // link-local
		"fd00:ec2::/32",         // Amazon
		"fd00:a9fe:a9fe::1/128", // Linode
		"fd00:42::42/128",       // Scaleway
		"64:ff9b::a9fe:0/112",   // link-local in NAT64
		"fd20:ce::254/128",      // Google
		"168.63.129.16/32",      // Azure
		"100.100.100.200/32",    // Alibaba
		"192.0.0.192/32",        // Oracle
	)
	notPublic = prefixes(
		"0.0.0.0/8",      // this network; 0.0.0.0 is the machine itself
		"10.0.0.0/8",     // private
		"100.64.0.0/10",  // shared by customers of a provider
		"127.0.0.0/8",    // loopback
		"169.254.0.0/16", // link-local
		"168.63.129.16/32",
		"172.16.0.0/12",                  // private
		"192.0.0.0/24",                   // protocol assignments
		"192.0.2.0/24",                   // documentation
		"192.88.99.0/24",                 // 6to4 relays
		"192.168.0.0/16",                 // private
		"198.18.0.0/15",                  // benchmarks
		"198.51.100.0/24",                // documentation
		"203.0.113.0/24",                 // documentation
		"224.0.0.0/3",                    // multicast, reserved, broadcast
		"::/96",                          // loopback, unspecified, IPv4-compatible
		"::ffff:0:0/96",                  // IPv4-mapped
		"64:ff9b::/96", "64:ff9b:1::/48", // IPv4 inside
		"100::/64",      // discard
		"2001::/23",     // protocol assignments, with Teredo
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4
		"3fff::/20",     // documentation
		"5f00::/16",     // segment routing
		"fc00::/7",      // private
		"fe80::/10",     // link-local
		"fec0::/10",     // site-local
		"ff00::/8",      // multicast
	)
)

// ParseNetwork parses a network in CIDR notation, or a single address. The result is masked.
// An IPv4 network that is written as an IPv6 one is an error, because it would match nothing.
func ParseNetwork(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
	}
	n, err := netip.ParsePrefix(text)
	if err == nil && n.Addr().Is4In6() {
		return n, errors.New("an IPv4 network must be written as one")
	}
	return n.Masked(), err
}

func prefixes(all ...string) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(all))
	for _, s := range all {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}
