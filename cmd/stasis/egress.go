//go:build linux

package main

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/stasisd/stasis/browser/firewall"
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
	_, err := f.networks()
	return err
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

// firewall keeps the Chromes from addresses that the policy does not allow. It returns nil
// if that is off, or not required and the system cannot do it.
func (c *serveCmd) firewall(policy egress.Policy, log *slog.Logger) (*firewall.Firewall, error) {
	if c.Egress == egressOff {
		log.Warn("the addresses that browsers connect to are not limited (--egress off)")
		return nil, nil
	}
	opened, err := c.openFirewall(policy)
	switch {
	case err == nil:
		log.Info("browsers can connect only to addresses that they may reach", "means", "nftables", "private", policy.Private, "networks", policy.Networks)
		return opened, nil
	case fault.Is(err, fault.Config):
		return nil, err
	case c.Egress == egressRequired:
		return nil, fault.Wrap(err, fault.Config, "serve.egress", "--egress required: the addresses that browsers connect to cannot be limited: "+fault.MessageOf(err))
	}
	log.Warn("the addresses that browsers connect to are not limited: pages can reach this machine and its network", "reason", fault.MessageOf(err))
	return nil, nil
}

func (c *serveCmd) openFirewall(policy egress.Policy) (*firewall.Firewall, error) {
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.Unsupported, "serve.egress", "the daemon must run as root for that")
	}
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
