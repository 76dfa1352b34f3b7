//go:build linux

package main

import (
	"log/slog"
	"net"
	"net/netip"
	"os"

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
	Egress       string         `help:"Keep browsers from addresses that they may not reach: auto if the system can, required to not start if it cannot, or off." enum:"auto,required,off" default:"auto"`
	AllowPrivate []netip.Prefix `help:"Networks that browsers and proxies may connect to although they are not public. By default all of them if the daemon serves only this machine (--listen on loopback, no --public-url, no --trusted-proxy), else none." placeholder:"CIDR"`
}

// egressPolicy returns what browsers may connect to. Callers on this machine can reach its
// network themselves, so their browsers may too. Behind a proxy callers can be elsewhere.
func (c *serveCmd) egressPolicy() egress.Policy {
	alone := c.onLoopback() && c.PublicURL == "" && len(c.TrustedProxy) == 0
	return egress.Policy{Private: alone && len(c.AllowPrivate) == 0, Networks: c.AllowPrivate}
}

// firewall keeps the Chromes from addresses that the policy does not allow. It returns nil
// if that is off, or not required and the system cannot do it.
func (c *serveCmd) firewall(policy egress.Policy, listener net.Addr, log *slog.Logger) (*firewall.Firewall, error) {
	if c.Egress == egressOff {
		log.Warn("the addresses that browsers connect to are not limited (--egress off)")
		return nil, nil
	}
	wall, err := c.openFirewall(policy, listener)
	switch {
	case err == nil:
		log.Info("browsers can connect only to addresses that they may reach", "means", "nftables", "private", policy.Private, "networks", policy.Networks)
		return wall, nil
	case c.Egress == egressRequired:
		return nil, fault.Wrap(err, fault.Config, "serve.egress", "--egress required: "+fault.MessageOf(err))
	}
	log.Warn("the addresses that browsers connect to are not limited: pages can reach this machine and its network", "reason", fault.MessageOf(err))
	return nil, nil
}

func (c *serveCmd) openFirewall(policy egress.Policy, listener net.Addr) (*firewall.Firewall, error) {
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.Unsupported, "serve.egress", "only a daemon that runs as root can limit them")
	}
	resolvers, err := firewall.Resolvers("/etc/resolv.conf")
	if err != nil {
		return nil, err
	}
	rules := firewall.Rules{Policy: policy, Resolvers: resolvers}
	if at, ok := listener.(*net.TCPAddr); ok {
		rules.OwnPorts = []uint16{uint16(at.Port)}
	}
	return firewall.Open(firewall.Users{First: uint32(c.UIDBase), Count: uint32(c.UIDCount)}, rules)
}
