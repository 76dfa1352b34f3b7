//go:build linux

package firewall

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// Resolvers returns the name servers of a resolv.conf(5). Without the file, or without a
// name server in it, that is the machine itself.
func Resolvers(file string) (all []netip.Addr, err error) {
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.Config, "firewall.resolvers", file+": cannot be read")
	}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if ip, err := netip.ParseAddr(words[1]); err == nil { // the C library ignores other lines too
			all = append(all, ip.WithZone("").Unmap())
		}
	}
	if len(all) == 0 {
		all = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	}
	return all, nil
}
