//go:build linux

package netns

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/browser/firewall"
	"github.com/stasisd/stasis/egress"
)

// Networks are the namespaces of a daemon's Chromes. Its methods are safe for concurrent
// use.
type Networks struct {
	pasta string
	rules firewall.Rules
	names atomic.Uint64 // refused names

	mu      sync.Mutex
	machine []netip.Prefix // the machine's own addresses
	live    map[*Link]bool
	refused uint64 // packets in namespaces that have ended
}

// New returns the Networks with these rules and this binary of pasta.
func New(pasta string, r firewall.Rules) *Networks {
	return &Networks{pasta: pasta, rules: r, machine: ownNetworks(), live: map[*Link]bool{}}
}

// Refused returns how many packets and names were refused.
func (n *Networks) Refused() (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := n.refused + n.names.Load()
	for link := range n.live {
		count, err := link.rules.Refused()
		if err != nil {
			return 0, err
		}
		sum += count
	}
	return sum, nil
}

// Watch applies changes of the machine's own addresses every interval, until ctx ends. It
// calls failed with each error.
func (n *Networks) Watch(ctx context.Context, interval time.Duration, failed func(error)) {
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if err := n.refresh(ownNetworks()); err != nil {
			failed(err)
		}
	}
}

func (n *Networks) refresh(now []netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Equal(now, n.machine) {
		return nil
	}
	for link := range n.live {
		if err := link.rules.SetMachine(now); err != nil {
			return err // the next look tries again
		}
	}
	n.machine = now
	return nil
}

// ownNetworks returns the machine's own addresses. Without them, only those count that the
// namespace has too.
func ownNetworks() []netip.Prefix {
	all := egress.OwnNetworks()
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}

// Network is what one run directory's Chrome may connect to, whether it runs or not. Its
// methods are safe for concurrent use.
type Network struct {
	all *Networks

	mu     sync.Mutex
	limits egress.Limits
	proxy  func(net.Conn)
	names  names
	watch  *watcher
	link   *Link // of the running Chrome; nil: none runs
}

type watcher struct{ notify func(egress.Refusal) }

// NewNetwork returns a Network without limits beyond the daemon's rules.
func (n *Networks) NewNetwork() *Network { return &Network{all: n} }

// Order returns how the namespace of the next Chrome is set up.
func (w *Network) Order() Order {
	o := Order{Pasta: w.all.pasta}
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	for _, ip := range w.all.rules.Resolvers {
		if ip.IsLoopback() || slices.ContainsFunc(w.all.machine, func(n netip.Prefix) bool { return n.Contains(ip) }) {
			o.Resolvers = append(o.Resolvers, ip)
		}
	}
	return o
}

// Limit replaces the limits, also those of a running Chrome. Connections to the address of
// the limits' proxy are given to proxy, which closes them.
func (w *Network) Limit(l egress.Limits, proxy func(net.Conn)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits, w.proxy = l, proxy
	if w.link != nil {
		if err := w.link.rules.Limit(l); err != nil {
			return err
		}
	}
	w.names.now = w.names.next
	return nil
}

// Watch calls notify for the refused packets until stop. notify must not wait. It may be
// called once more after stop. There is one watcher; a later one replaces an earlier one, whose
// stop then does nothing.
func (w *Network) Watch(notify func(egress.Refusal)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := &watcher{notify}
	w.watch = own
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watch == own {
			w.watch = nil
		}
	}
}

// Report counts a refused name, and notifies the watcher.
func (w *Network) Report(r egress.Refusal) {
	w.all.names.Add(1)
	w.report(r)
}

func (w *Network) report(r egress.Refusal) {
	w.mu.Lock()
	watch := w.watch
	w.mu.Unlock()
	if watch != nil {
		watch.notify(r)
	}
}
