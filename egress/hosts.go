package egress

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// Entry is one entry of a list: a network, or else a host as [ParseHost] returns it.
type Entry struct {
	Network netip.Prefix
	Host    string
}

// ParseEntry parses a network, an address or a host; see [ParseNetwork] and [ParseHost].
func ParseEntry(text string) (Entry, error) {
	if n, err := ParseNetwork(text); err == nil {
		return Entry{Network: n}, nil
	}
	host, err := ParseHost(text)
	return Entry{Host: host}, err
}

// MarshalText returns the text that [ParseEntry] parses.
func (e Entry) MarshalText() ([]byte, error) {
	if e.Host != "" {
		return []byte(e.Host), nil
	}
	return e.Network.MarshalText()
}

// UnmarshalText is [ParseEntry].
func (e *Entry) UnmarshalText(text []byte) (err error) {
	*e, err = ParseEntry(string(text))
	return err
}

// NewList makes a list of its entries.
func NewList(allow, deny []Entry) (l List) {
	l.Allow, l.AllowHosts = split(allow)
	l.Deny, l.DenyHosts = split(deny)
	return l
}

func split(entries []Entry) (networks []netip.Prefix, hosts []string) {
	for _, e := range entries {
		if e.Host != "" {
			hosts = append(hosts, e.Host)
		} else {
			networks = append(networks, e.Network)
		}
	}
	return networks, hosts
}

// anySubdomain begins a host that means all names below another, at any depth, and not that
// name itself.
const anySubdomain = "*."

// Bounds of RFC 1035, in bytes.
const (
	maxName  = 253
	maxLabel = 63
)

var errHost = errors.New("must be a host such as example.org, or *.example.org for all names below it")

// ParseHost parses the name of a host, or "*." and a name. The result is in lower case,
// without a final dot, and in the form of the DNS (RFC 5891).
func ParseHost(text string) (string, error) {
	name, below := strings.CutPrefix(strings.TrimSuffix(text, "."), anySubdomain)
	// Chrome reads names in the same way (UTS 46, not transitional).
	name, err := idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule()).ToASCII(name)
	if err != nil || name == "" || len(name) > maxName {
		return "", errHost
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", errHost
		}
	}
	if isNumber(labels[len(labels)-1]) { // Chrome reads it as an IPv4 address
		return "", errHost
	}
	if below {
		name = anySubdomain + name
	}
	return name, nil
}

// isNumber reports whether a last label makes a name an IPv4 address (URL standard, "ends
// in a number").
func isNumber(label string) bool {
	hex, isHex := strings.CutPrefix(label, "0x")
	return strings.Trim(label, "0123456789") == "" || isHex && strings.Trim(hex, "0123456789abcdef") == ""
}

// Matches reports whether a name is one of the hosts. The name may have upper case and a
// final dot.
func Matches(name string, hosts []string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	for _, h := range hosts {
		if above, below := strings.CutPrefix(h, anySubdomain); name == h || below && strings.HasSuffix(name, "."+above) {
			return true
		}
	}
	return false
}

// AllowsName reports whether all lists allow to look up a name. A list that allows hosts
// allows no other name. A list that allows only networks decides later, by the address.
func (l Limits) AllowsName(name string) bool {
	for _, list := range l.Lists {
		if Matches(name, list.DenyHosts) || len(list.AllowHosts) > 0 && !Matches(name, list.AllowHosts) {
			return false
		}
	}
	return true
}

// AllowsThroughProxy reports whether the lists allow a host that a proxy is asked for. An
// address is judged by the networks. The address of a name is not known.
func (l Limits) AllowsThroughProxy(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return l.AllowsName(host)
	}
	return l.checkLists(ip.Unmap().WithZone(""), false) == nil
}

// OnlyHosts reports whether a list allows hosts, and so no addresses beside theirs and its
// networks.
func (l Limits) OnlyHosts() bool {
	for _, list := range l.Lists {
		if len(list.AllowHosts) > 0 {
			return true
		}
	}
	return false
}

// HasHosts reports whether a list has hosts.
func (l Limits) HasHosts() bool {
	for _, list := range l.Lists {
		if len(list.AllowHosts) > 0 || len(list.DenyHosts) > 0 {
			return true
		}
	}
	return false
}
