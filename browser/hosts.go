package browser

import (
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/resolver"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// Hosts are the resolvers of the Chromes whose lists have hosts. A nil Hosts has none and
// supports none.
type Hosts struct {
	// CanRedirect returns nil if DNS queries can be redirected, else why not.
	CanRedirect func() error
	Policy      egress.Policy
	Lookup      resolver.Lookup // at name servers
	Files       resolver.Files  // of the system's own lookups
	Now         func() time.Time

	mu      sync.Mutex
	running map[limiter]hostResolver
}

type hostResolver struct {
	close  func()
	port   uint16
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
	return h.CanRedirect()
}

// resolve starts the resolver of a Chrome, unless it runs with the same lists. It returns the
// limits with its port, and with the addresses of hosts that Chrome finds without a query.
// offline: Chrome needs no names, because all goes through a proxy.
func (h *Hosts) resolve(of limiter, limits egress.Limits, offline bool) (egress.Limits, error) {
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
	has, running := h.running[of]
	if running && (offline || !is.Equal(has.egress)) {
		has.close()
		delete(h.running, of)
		running = false
	}
	if offline || !limits.HasHosts() {
		return limits, nil
	}
	if running {
		// In the same order the rules keep the addresses that the resolver has had admitted.
		limits.Lists, limits.Private = has.egress.Lists, has.egress.Private
	} else {
		var err error
		if has, err = h.start(of, limits); err != nil {
			return limits, err
		}
		has.egress = is
		if h.running == nil {
			h.running = map[limiter]hostResolver{}
		}
		h.running[of] = has
	}
	limits.Resolver = has.port
	return limits, nil
}

// start starts a resolver.
func (h *Hosts) start(of limiter, limits egress.Limits) (has hostResolver, err error) {
	c := resolver.Config{Limits: limits, Policy: h.Policy, Lookup: h.Lookup, Now: h.Now, Refuse: of.Report}
	if limits.OnlyHosts() {
		c.Admit = of.Admit
	}
	r := resolver.New(c)
	port, stop, err := of.Resolve(r)
	if err != nil {
		r.Close()
		return has, err
	}
	return hostResolver{port: port, close: func() { stop(); r.Close() }}, nil
}

// stop ends the resolver of a Chrome, if there is one.
func (h *Hosts) stop(of limiter) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if has, ok := h.running[of]; ok {
		has.close()
		delete(h.running, of)
	}
}
