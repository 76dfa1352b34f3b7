package resolver

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// Files are the files by which the system finds hosts without a query of the DNS.
type Files struct {
	Hosts    string // hosts(5)
	Nsswitch string // nsswitch.conf(5)
	// Nscd are the sockets of nscd(8). The C library asks it first, whatever Nsswitch says.
	Nscd []string
}

// Check returns an error if the system asks for hosts in another way than over port 53, such
// as over a socket of nscd, systemd-resolved or avahi (mdns4_minimal). Such queries are not
// redirected. myhostname asks only the kernel.
func (f Files) Check() error {
	for _, socket := range f.Nscd {
		if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
			return fault.New(fault.Unsupported, "resolver.files", "egress: names of hosts are not supported on this machine: nscd looks hosts up, at %s; stop it and remove the socket", socket)
		}
	}
	raw, err := readIfThere(f.Nsswitch)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		line, _, _ = strings.Cut(line, "#")
		words, ok := strings.CutPrefix(strings.TrimSpace(line), "hosts:")
		if !ok {
			continue
		}
		for _, word := range strings.Fields(words) {
			switch {
			case strings.HasPrefix(word, "[") || strings.HasSuffix(word, "]"): // what to do after a source
			case word == "files", word == "dns", word == "myhostname":
			default:
				return fault.New(fault.Unsupported, "resolver.files", "egress: names of hosts are not supported on this machine: the hosts of %s come from %q; only files, dns and myhostname can be supervised", f.Nsswitch, word)
			}
		}
	}
	return nil
}

func readIfThere(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.Config, "resolver.files", file+": cannot be read")
	}
	return raw, nil
}

// With returns limits whose lists have, as networks, the addresses of the hosts that Chrome
// finds without a query: those of the hosts file, and localhost with all names below it. A
// missing file has no hosts.
func (f Files) With(l egress.Limits) (egress.Limits, error) {
	raw, err := readIfThere(f.Hosts)
	if err != nil {
		return l, err
	}
	lists := append([]egress.List(nil), l.Lists...)
	known := make([]struct{ allow, deny map[netip.Prefix]bool }, len(lists))
	for i := range lists { // the caller's networks stay as they are
		lists[i].Allow, known[i].allow = slices.Clone(lists[i].Allow), map[netip.Prefix]bool{}
		lists[i].Deny, known[i].deny = slices.Clone(lists[i].Deny), map[netip.Prefix]bool{}
	}
	// Block lists have the same address in each of many thousand lines.
	addNew := func(networks *[]netip.Prefix, known map[netip.Prefix]bool, n netip.Prefix) {
		if !known[n] {
			known[n] = true
			*networks = append(*networks, n)
		}
	}
	add := func(ip netip.Addr, matches func(hosts []string) bool) {
		single := netip.PrefixFrom(ip, ip.BitLen())
		for i := range lists {
			if matches(lists[i].AllowHosts) {
				addNew(&lists[i].Allow, known[i].allow, single)
			}
			if matches(lists[i].DenyHosts) {
				addNew(&lists[i].Deny, known[i].deny, single)
			}
		}
	}
	for line := range strings.Lines(string(raw)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		ip, err := netip.ParseAddr(words[0])
		if err != nil {
			continue // the C library ignores it too
		}
		for _, name := range words[1:] {
			add(ip.Unmap().WithZone(""), func(hosts []string) bool { return egress.Matches(name, hosts) })
		}
	}
	for _, ip := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		add(ip, func(hosts []string) bool {
			return egress.Matches("localhost", hosts) || hasBelowLocalhost(hosts)
		})
	}
	l.Lists = lists
	return l, nil
}

// hasBelowLocalhost reports whether there is a host below localhost. Chrome knows all their
// addresses (net/base/url_util.cc, IsLocalHostname).
func hasBelowLocalhost(hosts []string) bool {
	for _, h := range hosts {
		if strings.HasSuffix(h, ".localhost") {
			return true
		}
	}
	return false
}
