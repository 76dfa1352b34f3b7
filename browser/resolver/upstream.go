package resolver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
)

// serverTimeout bounds how long one server may take.
const serverTimeout = 4 * time.Second

// Servers parses addresses of name servers: an IP address, with a port if it is not 53.
func Servers(texts []string) (all []string, err error) {
	for _, text := range texts {
		at, err := netip.ParseAddrPort(text)
		if ip, plain := netip.ParseAddr(text); plain == nil {
			at, err = netip.AddrPortFrom(ip, 53), nil
		}
		if err != nil || at.Port() == 0 {
			return nil, fault.New(fault.Config, "resolver.servers", "--resolver: %q: must be an address such as 192.0.2.53 or 192.0.2.53:5353", text)
		}
		all = append(all, at.String())
	}
	return all, nil
}

// Upstream looks names up at name servers, one after the other until one answers; without
// servers at those of /etc/resolv.conf. Names in /etc/hosts are found there.
func Upstream(servers []string) Lookup {
	if len(servers) == 0 {
		return lookupWith(&net.Resolver{PreferGo: true})
	}
	var lookups []Lookup
	for _, server := range servers {
		lookups = append(lookups, lookupWith(&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server)
		}}))
	}
	return func(ctx context.Context, network, name string) (found []netip.Addr, err error) {
		for _, lookup := range lookups {
			if found, err = lookupWithin(ctx, lookup, network, name); err == nil {
				return found, nil
			}
		}
		return nil, err
	}
}

func lookupWithin(ctx context.Context, lookup Lookup, network, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	return lookup(ctx, network, name)
}

func lookupWith(r *net.Resolver) Lookup {
	return func(ctx context.Context, network, name string) ([]netip.Addr, error) {
		// The final dot keeps search domains away.
		found, err := r.LookupNetIP(ctx, network, strings.TrimSuffix(name, ".")+".")
		var failed *net.DNSError
		if errors.As(err, &failed) && failed.IsNotFound {
			return nil, nil
		}
		return found, err
	}
}
