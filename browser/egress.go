package browser

import (
	"net"
	"net/netip"
	"strings"

	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/browser/resolver"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// Firewall limits what the Chromes of a user connect to, within the daemon's policy; see
// firewall.Firewall.
type Firewall interface {
	Limit(uid int, l egress.Limits) error
	Admit(uid int, add, forget []netip.Addr) error
	Watch(uid int, notify func(egress.Refusal)) (stop func())
	Report(uid int, r egress.Refusal)
}

// limiter limits what one Chrome connects to. Two of the same Chrome are equal.
type limiter interface {
	// Limit replaces the limits. What Chrome sends to the limits' proxy is given to proxy, if
	// the limiter takes Chrome's connections itself.
	Limit(l egress.Limits, proxy func(net.Conn)) error
	// Resolve has the DNS queries that get to the port answered by r until stop. They do from
	// the next Limit with the port on.
	Resolve(r *resolver.Resolver) (port uint16, stop func(), err error)
	// Admit allows connections to the addresses in add, and no longer to those in forget.
	Admit(add, forget []netip.Addr) error
	Watch(notify func(egress.Refusal)) (stop func())
	// Report reports a refusal that the limiter itself does not see.
	Report(r egress.Refusal)
}

// limiter returns what limits the Chrome of a run directory; nil: nothing does.
func (s *Starter) limiter(dir *Dir) limiter {
	switch {
	case s.Firewall != nil:
		return userLimiter{s.Firewall, dir.UID}
	case dir.Network() != nil:
		return dir.Network()
	}
	return nil
}

// userLimiter limits a Chrome by its user.
type userLimiter struct {
	firewall Firewall
	uid      int
}

// Limit implements [limiter].
func (u userLimiter) Limit(l egress.Limits, _ func(net.Conn)) error {
	return u.firewall.Limit(u.uid, l)
}

// Resolve implements [limiter].
func (u userLimiter) Resolve(r *resolver.Resolver) (port uint16, stop func(), err error) {
	server, err := resolver.Listen(r.Answer)
	if err != nil {
		return 0, nil, err
	}
	return server.Port(), server.Close, nil
}

// Admit implements [limiter].
func (u userLimiter) Admit(add, forget []netip.Addr) error {
	return u.firewall.Admit(u.uid, add, forget)
}

// Report implements [limiter].
func (u userLimiter) Report(r egress.Refusal) { u.firewall.Report(u.uid, r) }

// Watch implements [limiter].
func (u userLimiter) Watch(notify func(egress.Refusal)) func() {
	return u.firewall.Watch(u.uid, notify)
}

// limitsEgress reports whether something limits what Chromes connect to.
func (s *Starter) limitsEgress() bool { return s.Firewall != nil || s.Launcher.HasNetworks() }

// throughProxy is the rule of Chrome's bypass list that ends the implicit bypass of
// loopback (net/docs/proxy.md).
const throughProxy = "<-loopback>"

// CanLimitEgress returns nil if the limits of sessions can be put in place.
func (s *Starter) CanLimitEgress(e Egress) error {
	if !s.limitsEgress() {
		return fault.New(fault.Unsupported, "browser.egress", "egress: this daemon does not limit the addresses that browsers connect to; its log says why")
	}
	if e.HasHosts() {
		return s.Hosts.can()
	}
	return nil
}

// HasHosts reports whether a list has hosts.
func (e Egress) HasHosts() bool { return egress.Limits{Lists: e.Lists}.HasHosts() }

// Egress returns what the Chrome may connect to.
func (b *Browser) Egress() Egress { return b.options.Egress }

// LimitEgress replaces the limits of a Chrome that waited for its session.
func (b *Browser) LimitEgress(limits Egress) error {
	b.options.Egress = limits
	return b.starter.limitEgress(b.dir, b.options, b.relay)
}

// Egress is [Browser.Egress].
func (s *Standby) Egress() Egress { return s.b.Egress() }

// LimitEgress is [Browser.LimitEgress], before the tabs load.
func (s *Standby) LimitEgress(limits Egress) error { return s.b.LimitEgress(limits) }

// limitEgress puts a session's limits in place. Its proxy is its only way out, except for
// the hosts that bypass it; r leads to the proxy. Lists without a limiter are unsupported:
// no session starts without its limits.
func (s *Starter) limitEgress(dir *Dir, o Options, r *relay.Relay) error {
	limiter := s.limiter(dir)
	if limiter == nil {
		if len(o.Egress.Lists) > 0 {
			return s.CanLimitEgress(o.Egress)
		}
		return nil
	}
	limits := egress.Limits{Lists: o.Egress.Lists, Private: o.Egress.Private}
	p := nilIfDirect(o.Overrides.Proxy)
	if p != nil {
		at, err := netip.ParseAddrPort(r.Address())
		if err != nil {
			return fault.Wrap(err, fault.Internal, "browser.egress", "the relay of the proxy has no address")
		}
		limits.Proxy = &egress.Proxy{At: at, Only: true, Loopback: true}
		for _, rule := range strings.FieldsFunc(p.Bypass, func(c rune) bool { return c == ',' || c == ';' || c == ' ' }) {
			if rule == throughProxy {
				limits.Proxy.Loopback = false
			} else {
				limits.Proxy.Only = false
			}
		}
	}
	limits, err := s.Hosts.resolve(limiter, limits, p != nil && limits.Proxy.Only)
	if err != nil {
		return err
	}
	var proxy func(net.Conn)
	if p != nil {
		proxy = r.Take
		r.Limit(limits.Control(s.Policy, r.Upstream()))
		if limits.HasHosts() {
			r.LimitHosts(limits.AllowsThroughProxy, func(host string) { limiter.Report(egress.Refusal{Protocol: "tcp", Host: host}) })
		} else {
			r.LimitHosts(nil, nil)
		}
	}
	if err := limiter.Limit(limits, proxy); err != nil {
		s.Hosts.stop(limiter)
		return err
	}
	return nil
}

// unlimitEgress removes the limits of a Chrome of which no process is left. It is called once
// for a Chrome: its user may have another one later. If it fails, the next start of a Chrome of
// this user tries again.
func (s *Starter) unlimitEgress(dir *Dir) {
	l := s.limiter(dir)
	s.Hosts.stop(l)
	if l != nil {
		_ = l.Limit(egress.Limits{}, nil) // see above
	}
}

// watchRefusals calls notify for each refused connection of a Chrome until stop, also for
// those of r, the relay to the session's proxy.
func (s *Starter) watchRefusals(dir *Dir, r *relay.Relay, notify func(egress.Refusal)) (stop func()) {
	ofRelay := r.Watch(notify)
	l := s.limiter(dir)
	if l == nil {
		return ofRelay
	}
	ofChrome := l.Watch(notify)
	return func() {
		ofRelay()
		ofChrome()
	}
}
