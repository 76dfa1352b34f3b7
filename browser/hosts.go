package browser

import (
	"net/netip"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/resolver"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// HostFirewall redirects the DNS queries of users with a resolver, and allows what it has
// resolved; see firewall.Firewall.
type HostFirewall interface {
	CanRedirect() error
	Admit(uid int, add, forget []netip.Addr) error
	Report(uid int, r egress.Refusal)
}

// Hosts are the resolvers of the Chromes whose lists have hosts. A nil Hosts has none and
// supports none.
type Hosts struct {
	Firewall HostFirewall
	Policy   egress.Policy
	Lookup   resolver.Lookup // at name servers
	Files    resolver.Files  // of the system's own lookups
	Now      func() time.Time

	mu      sync.Mutex
	running map[int]hostResolver // by user
}

type hostResolver struct {
	*resolver.Resolver
	egress Egress // whose lists it follows, with the addresses of the hosts file
}

// can returns nil if lists can have hosts.
func (h *Hosts) can() error {
	if h == nil {
		return fault.New(fault.Unsupported, "browser.egress", "egress: this daemon does not support names of hosts, only networks")
	}
	if err := h.Files.Check(); err != nil {
		return err
	}
	return h.Firewall.CanRedirect()
}

// resolve starts the resolver of a user, unless it runs with the same lists. It returns the
// limits with its port, and with the addresses of hosts that Chrome finds without a query.
// offline: Chrome needs no names, because all goes through a proxy.
func (h *Hosts) resolve(uid int, limits egress.Limits, offline bool) (egress.Limits, error) {
	if limits.HasHosts() {
		if err := h.can(); err != nil {
			return limits, err
		}
	}
	if h == nil {
		return limits, nil
	}
	if limits.HasHosts() {
		var err error
		if limits, err = h.Files.With(limits); err != nil {
			return limits, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	is := Egress{Lists: limits.Lists, Private: limits.Private}
	has, running := h.running[uid]
	if running && (offline || !is.Equal(has.egress)) {
		has.Close()
		delete(h.running, uid)
		running = false
	}
	if offline || !limits.HasHosts() {
		return limits, nil
	}
	if running {
		// In the same order the firewall keeps the addresses that the resolver has had admitted.
		limits.Lists, limits.Private = has.egress.Lists, has.egress.Private
	} else {
		has.egress = is
		c := resolver.Config{Limits: limits, Policy: h.Policy, Lookup: h.Lookup, Now: h.Now,
			Refuse: func(r egress.Refusal) { h.Firewall.Report(uid, r) }}
		if limits.OnlyHosts() {
			c.Admit = func(add, forget []netip.Addr) error { return h.Firewall.Admit(uid, add, forget) }
		}
		var err error
		if has.Resolver, err = resolver.Start(c); err != nil {
			return limits, err
		}
		if h.running == nil {
			h.running = map[int]hostResolver{}
		}
		h.running[uid] = has
	}
	limits.Resolver = has.Port()
	return limits, nil
}

// stop ends the resolver of a user, if there is one.
func (h *Hosts) stop(uid int) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if has, ok := h.running[uid]; ok {
		has.Close()
		delete(h.running, uid)
	}
}
