package browser

import (
	"net/netip"
	"strings"

	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/state"
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

// limitEgress makes a session's proxy its only way out, except for the hosts that bypass it.
// relay leads to the proxy. Without a proxy there are no limits but the policy.
func limitEgress(f Firewall, uid int, p *state.Proxy, r *relay.Relay) error {
	if f == nil {
		return nil
	}
	p = nilIfDirect(p)
	if p == nil {
		return f.Limit(uid, egress.Limits{})
	}
	at, err := netip.ParseAddrPort(r.Address())
	if err != nil {
		return err
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
	return f.Limit(uid, egress.Limits{Proxy: &egress.Proxy{At: at, Only: only, Loopback: loopback}})
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
