package browser

import (
	"net/netip"
	"strings"

	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// Firewall limits what the Chromes of a user connect to, within the daemon's policy; see
// firewall.Firewall.
type Firewall interface {
	Limit(uid int, l egress.Limits) error
	Watch(uid int, notify func(egress.Refusal)) (stop func())
}

// throughProxy is the rule of Chrome's bypass list that ends the implicit bypass of
// loopback (net/docs/proxy.md).
const throughProxy = "<-loopback>"

// LimitEgress replaces the limits of a Chrome that waited for its session.
func (b *Browser) LimitEgress(limits Egress) error {
	b.options.Egress = limits
	return limitEgress(b.firewall, b.dir.UID, b.options, b.relay)
}

// LimitEgress is [Browser.LimitEgress], before the tabs load.
func (s *Standby) LimitEgress(limits Egress) error { return s.b.LimitEgress(limits) }

// limitEgress puts a session's limits in place. Its proxy is its only way out, except for
// the hosts that bypass it; r leads to the proxy. Lists without a firewall are unsupported:
// no session starts without its limits.
func limitEgress(f Firewall, uid int, o Options, r *relay.Relay) error {
	if f == nil && len(o.Egress.Lists) > 0 {
		return fault.New(fault.Unsupported, "browser.egress", "egress: this daemon cannot limit the addresses that browsers connect to; it must run as root, without --egress off")
	}
	if f == nil {
		return nil
	}
	limits := egress.Limits{Lists: o.Egress.Lists, Private: o.Egress.Private}
	p := nilIfDirect(o.Overrides.Proxy)
	if p == nil {
		return f.Limit(uid, limits)
	}
	at, err := netip.ParseAddrPort(r.Address())
	if err != nil {
		return fault.Wrap(err, fault.Internal, "browser.egress", "the relay of the proxy has no address")
	}
	bypass := strings.FieldsFunc(p.Bypass, func(c rune) bool { return c == ',' || c == ';' || c == ' ' })
	only, loopback := true, true
	for _, rule := range bypass {
		if rule == throughProxy {
			loopback = false
		} else {
			only = false
		}
	}
	limits.Proxy = &egress.Proxy{At: at, Only: only, Loopback: loopback}
	return f.Limit(uid, limits)
}

// unlimitEgress removes the session's limits. No process of its user may be left.
func (b *Browser) unlimitEgress() error {
	if b.firewall == nil {
		return nil
	}
	return b.firewall.Limit(b.dir.UID, egress.Limits{})
}

// watchRefusals calls notify for each refused connection until stop.
func (b *Browser) watchRefusals(notify func(egress.Refusal)) (stop func()) {
	if b.firewall == nil {
		return func() {}
	}
	return b.firewall.Watch(b.dir.UID, notify)
}
