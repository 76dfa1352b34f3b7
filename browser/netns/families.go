//go:build linux

package netns

import (
	"os"
	"slices"
	"strings"
)

// Families are families of addresses. Pasta gives a namespace a way out for those that the
// machine has one for.
type Families struct{ IPv4, IPv6 bool }

// include reports whether these are at least the wanted ones, and at least one.
func (f Families) include(wanted Families) bool {
	return f != Families{} && (f.IPv4 || !wanted.IPv4) && (f.IPv6 || !wanted.IPv6)
}

// procNet is the folder of lists of this process's network namespace.
const procNet = "/proc/self/net"

// waysOut returns the families with a default route and, for IPv6, an address that is valid
// beyond the link: without it pasta takes no IPv6. They are read from a folder of lists as in
// proc_pid_net(5).
func waysOut(net string) Families {
	return Families{
		IPv4: listed(net+"/route", func(f []string) bool { return len(f) > 1 && f[0] != "lo" && f[1] == "00000000" }),
		IPv6: listed(net+"/ipv6_route", func(f []string) bool { return f[0] == strings.Repeat("0", 32) && f[len(f)-1] != "lo" }) &&
			listed(net+"/if_inet6", func(f []string) bool { return len(f) == 6 && f[3] == globalScope && f[5] != "lo" }),
	}
}

// globalScope is the scope of an address in if_inet6.
const globalScope = "00"

// listed reports whether a file has a line of fields that match. A family that is off has no
// file.
func listed(file string, match func(fields []string) bool) bool {
	list, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(slices.Collect(strings.Lines(string(list))), func(line string) bool {
		f := strings.Fields(line)
		return len(f) > 0 && match(f)
	})
}
