// Package resolver answers the DNS queries of one Chrome whose session has names of hosts in
// its lists. The kernel redirects the queries to sockets of a [Server], which has a [Resolver]
// answer them.
//
// The Resolver decides by the name. A name that the lists do not allow does not exist, and is never
// looked up: a page could send data in it. Of an allowed name it checks each address, and has
// the kernel allow it before the answer goes out. So a name that changes its address gains
// nothing. It answers with addresses only: other records could lead around the check (RFC
// 9460 section 7.3).
package resolver

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stasisd/stasis/egress"
)

const (
	// ttl is how long Chrome may keep an answer.
	ttl = time.Minute
	// renewAfter is how long after an address was admitted an answer with it admits it again.
	renewAfter = time.Minute
	// lookupTimeout bounds one query.
	lookupTimeout = 10 * time.Second
	// maxAddresses is how many addresses a session may be admitted to at once. Those of the
	// oldest answers are forgotten first.
	maxAddresses = 2048
	// maxAnswer is how many addresses an answer has at most.
	maxAnswer = 24
	// Refusals are reported at most reportRate times a second, after reportBurst at once.
	reportRate  = 50
	reportBurst = 200
)

// Lookup returns the addresses of a name. network is "ip4" or "ip6". A name without such
// addresses is no error.
type Lookup func(ctx context.Context, network, name string) ([]netip.Addr, error)

// Config says how a Resolver decides. All fields but Admit are needed.
type Config struct {
	Limits egress.Limits
	Policy egress.Policy
	Lookup Lookup
	// Admit makes the kernel allow the addresses in add for some minutes, longer than
	// the answer may be kept, and no longer those in forget. nil: it allows all addresses
	// that the policy allows.
	Admit func(add, forget []netip.Addr) error
	// Refuse is called for a name or an address of a name that is refused. It must not wait.
	Refuse func(egress.Refusal)
	Now    func() time.Time
}

// Resolver answers the queries of one session. Close ends it.
type Resolver struct {
	c       Config
	reports *rate.Limiter
	life    context.Context
	cancel  context.CancelFunc
	answers sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	admitted map[netip.Addr]time.Time // when
}

// New returns a Resolver.
func New(c Config) *Resolver {
	r := &Resolver{c: c, reports: rate.NewLimiter(reportRate, reportBurst), admitted: map[netip.Addr]time.Time{}}
	r.life, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close ends it and waits for its answers. It is idempotent.
func (r *Resolver) Close() {
	r.cancel()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.answers.Wait()
}

// begin registers an answer, for which Close waits; false after Close.
func (r *Resolver) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.answers.Add(1)
	}
	return !r.closed
}

// Readmit has the next answers admit their addresses again: the kernel has lost them.
func (r *Resolver) Readmit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.admitted)
}

// addresses returns the addresses of an allowed name that may be answered. The kernel allows
// them when it returns.
func (r *Resolver) addresses(ctx context.Context, network, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	found, err := r.c.Lookup(ctx, network, name)
	if err != nil {
		return nil, err
	}
	var permitted []netip.Addr
	for _, ip := range found[:min(len(found), maxAnswer)] {
		ip = ip.Unmap().WithZone("")
		if err := r.c.Limits.CheckNamed(r.c.Policy, ip); err != nil {
			r.refuse(egress.Refusal{Protocol: "dns", Host: name, To: netip.AddrPortFrom(ip, 0)})
			continue
		}
		permitted = append(permitted, ip)
	}
	return permitted, r.admit(permitted)
}

var errTooMany = errors.New("the session has too many addresses")

// admit makes the kernel allow addresses, unless it was asked to shortly before.
func (r *Resolver) admit(all []netip.Addr) error {
	if r.c.Admit == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.c.Now()
	var add, forget []netip.Addr
	for _, ip := range all {
		if at, ok := r.admitted[ip]; !ok || now.Sub(at) > renewAfter {
			add = append(add, ip)
		}
	}
	if len(add) == 0 {
		return nil
	}
	if len(r.admitted)+len(add) > maxAddresses {
		for ip, at := range r.admitted {
			if now.Sub(at) > egress.AdmittedFor {
				forget = append(forget, ip)
			}
		}
		if len(r.admitted)+len(add)-len(forget) > maxAddresses {
			return errTooMany
		}
	}
	if err := r.c.Admit(add, forget); err != nil {
		return err
	}
	for _, ip := range forget {
		delete(r.admitted, ip)
	}
	for _, ip := range add {
		r.admitted[ip] = now
	}
	return nil
}

func (r *Resolver) refuse(refusal egress.Refusal) {
	if r.reports.AllowN(r.c.Now(), 1) {
		r.c.Refuse(refusal)
	}
}
