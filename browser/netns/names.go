//go:build linux

package netns

import (
	"context"
	"net/netip"

	"github.com/stasisd/stasis/browser/firewall"
	"github.com/stasisd/stasis/browser/resolver"
)

// names are the resolvers of a Network.
type names struct {
	now  *resolver.Resolver // answers queries; nil: nothing does
	next *resolver.Resolver // does so from the next Limit on
}

// Resolve has r answer the DNS queries of the running Chrome and of later ones, from the next
// [Network.Limit] on until stop. The limits then have the port.
func (w *Network) Resolve(r *resolver.Resolver) (port uint16, stop func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = names{next: r}
	return firewall.NamespaceResolver, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.names.next == r {
			w.names = names{}
		}
	}, nil
}

// answer answers a query of the running Chrome.
func (w *Network) answer(ctx context.Context, query []byte, limit int) []byte {
	w.mu.Lock()
	r := w.names.now
	w.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.Answer(ctx, query, limit)
}

// Admit allows connections to addresses of hosts, and no longer to those in forget; see
// [firewall.Namespace.Admit].
func (w *Network) Admit(add, forget []netip.Addr) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.link == nil {
		return nil // the next Chrome asks for its names itself
	}
	return w.link.rules.Admit(add, forget)
}

// readmit has the addresses of names admitted again, in the namespace of a new Chrome.
func (w *Network) readmit() {
	w.mu.Lock()
	r := w.names.now
	w.mu.Unlock()
	if r != nil {
		r.Readmit()
	}
}
