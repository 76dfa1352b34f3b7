//go:build linux

package main

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/firewall"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/netns"
	"github.com/stasisd/stasis/browser/resolver"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// The values of --egress.
const (
	egressRequired = "required"
	egressOff      = "off"
)

// egressFlags say which addresses may be connected to on behalf of callers.
type egressFlags struct {
	Egress       string   `help:"Keep browsers from addresses that they may not reach: auto if the system can, required to not start if it cannot, or off." enum:"auto,required,off" default:"auto"`
	Resolver     []string `help:"Name servers, such as 192.0.2.53 or 192.0.2.53:5353, for sessions whose egress has names of hosts. By default those of /etc/resolv.conf." placeholder:"ADDRESS"`
	AllowPrivate []string `help:"Networks or addresses that browsers and proxies may connect to although they are not public, or none. By default all of them if the daemon serves only this machine (--listen on loopback, no --public-url, no --trusted-proxy), else none." placeholder:"CIDR"`
}

// egressPolicy returns what browsers may connect to. Callers on this machine can reach its
// network themselves, so their browsers may too. Behind a proxy callers can be elsewhere.
// The daemon listens at listener.
func (c *serveCmd) egressPolicy(listener net.Addr) egress.Policy {
	alone := c.onLoopback() && c.PublicURL == "" && len(c.TrustedProxy) == 0
	networks, _ := c.networks() // check has looked at the error
	p := egress.Policy{Private: alone && len(c.AllowPrivate) == 0, Networks: networks}
	if at, ok := listener.(*net.TCPAddr); ok {
		p.OwnPorts = []uint16{uint16(at.Port)}
	}
	return p
}

// check refuses what is no network, and networks that would have no effect.
func (f *egressFlags) check() error {
	if _, err := f.networks(); err != nil {
		return err
	}
	_, err := resolver.Servers(f.Resolver)
	return err
}

// hosts returns the resolvers of sessions whose lists have hosts. canRedirect returns why their
// queries cannot be redirected, or nil.
func (f *egressFlags) hosts(canRedirect func() error, policy egress.Policy) *browser.Hosts {
	servers, _ := resolver.Servers(f.Resolver) // check has looked at the error
	return &browser.Hosts{CanRedirect: canRedirect, Policy: policy, Lookup: resolver.Upstream(servers), Now: time.Now,
		Files: resolver.Files{Hosts: "/etc/hosts", Nsswitch: "/etc/nsswitch.conf", Nscd: []string{"/run/nscd/socket", "/var/run/nscd/socket"}}}
}

// networks returns the networks of --allow-private.
func (f *egressFlags) networks() (all []netip.Prefix, err error) {
	if len(f.AllowPrivate) == 1 && f.AllowPrivate[0] == "none" {
		return nil, nil
	}
	for _, text := range f.AllowPrivate {
		n, err := egress.ParseNetwork(text)
		if err != nil {
			return nil, fault.New(fault.Config, "serve", "--allow-private: %q: must be a network such as 10.0.0.0/8, an address, or none", text)
		}
		for _, never := range egress.Never() {
			if never.Contains(n.Addr()) && never.Bits() <= n.Bits() {
				return nil, fault.New(fault.Config, "serve", "--allow-private: %s: link-local and metadata addresses are never allowed", text)
			}
		}
		all = append(all, n)
	}
	return all, nil
}

// limiter keeps the Chromes from addresses that the policy does not allow: by their users if
// root runs the daemon, else by network namespaces.
type limiter struct {
	firewall *firewall.Firewall
	networks *netns.Networks
}

// limiter returns what keeps the Chromes from addresses. It is empty if that is off, or not
// required and the system cannot do it.
func (c *serveCmd) limiter(ctx context.Context, policy egress.Policy, log *slog.Logger) (l limiter, err error) {
	if c.Egress == egressOff {
		log.Warn("the addresses that browsers connect to are not limited (--egress off)")
		return limiter{}, nil
	}
	means := "nftables"
	if os.Geteuid() == 0 {
		l.firewall, err = c.openFirewall(policy)
	} else {
		means = "network namespaces with nftables and pasta"
		l.networks, err = openNetworks(ctx, policy)
	}
	switch {
	case err == nil:
		log.Info("browsers can connect only to addresses that they may reach", "means", means, "private", policy.Private, "networks", policy.Networks)
		return l, nil
	case fault.Is(err, fault.Config):
		return limiter{}, err
	case c.Egress == egressRequired:
		return limiter{}, fault.Wrap(err, fault.Config, "serve.egress", "--egress required: the addresses that browsers connect to cannot be limited: "+fault.MessageOf(err))
	}
	log.Warn("the addresses that browsers connect to are not limited: pages can reach this machine and its network", "reason", fault.MessageOf(err))
	return limiter{}, nil
}

// limits reports whether addresses are limited.
func (l limiter) limits() bool { return l.firewall != nil || l.networks != nil }

// refused returns what counts refused packets; nil: addresses are not limited.
func (l limiter) refused() func() (uint64, error) {
	switch {
	case l.firewall != nil:
		return l.firewall.Refused
	case l.networks != nil:
		return l.networks.Refused
	}
	return nil
}

// canRedirect returns nil if DNS queries can be redirected, else why not. A namespace has
// redirected the connections of a test when the daemon started.
func (l limiter) canRedirect() error {
	if l.firewall != nil {
		return l.firewall.CanRedirect()
	}
	return nil
}

// keep keeps the limits in place until ctx ends.
func (l limiter) keep(ctx context.Context, log *slog.Logger) {
	switch {
	case l.firewall != nil:
		keepRules(ctx, l.firewall, log)
	case l.networks != nil:
		l.networks.Watch(ctx, rulesInterval, func(err error) {
			log.Error("the rules for the machine's addresses cannot be changed", "error", err)
		})
	}
}

// close ends the limiter. The rules stay unless all Chromes have ended.
func (l limiter) close(ended bool) error {
	switch {
	case l.firewall == nil:
		return nil // a namespace ends with its Chrome
	case ended:
		return l.firewall.Close()
	}
	return l.firewall.Leave()
}

// networksDeadline bounds the test whether network namespaces can be had.
const networksDeadline = 20 * time.Second

// openNetworks returns the network namespaces of an ordinary user's Chromes, after one was
// made as a test.
func openNetworks(ctx context.Context, policy egress.Policy) (*netns.Networks, error) {
	pasta, err := netns.FindPasta()
	if err != nil {
		return nil, err
	}
	resolvers, err := firewall.Resolvers("/etc/resolv.conf")
	if err != nil {
		return nil, err
	}
	all := netns.New(pasta, firewall.Rules{Policy: policy, Resolvers: resolvers})
	ctx, cancel := context.WithTimeout(ctx, networksDeadline)
	defer cancel()
	if err := launch.CheckNetworks(ctx, all); err != nil {
		return nil, err
	}
	return all, nil
}

func (c *serveCmd) openFirewall(policy egress.Policy) (*firewall.Firewall, error) {
	resolvers, err := firewall.Resolvers("/etc/resolv.conf")
	if err != nil {
		return nil, err
	}
	return firewall.Open(firewall.Users{First: uint32(c.UIDBase), Count: uint32(c.UIDCount)}, firewall.Rules{Policy: policy, Resolvers: resolvers})
}

// rulesInterval is how often the daemon looks whether the rules are still there.
const rulesInterval = time.Second

// keepRules installs the rules again when another program has removed them, until ctx ends.
func keepRules(ctx context.Context, f *firewall.Firewall, log *slog.Logger) {
	look := time.NewTicker(rulesInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		missing, err := f.Ensure()
		switch {
		case err != nil:
			log.Error("the rules that limit the addresses of browsers cannot be installed again", "error", err)
		case missing:
			log.Warn("another program had removed the rules that limit the addresses of browsers; they are installed again")
		}
	}
}
