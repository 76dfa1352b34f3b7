//go:build linux

package firewall

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// admission is one of the two sets of a user's admitted addresses of a family. To those
// in fresh, new connections are allowed. Those in known are allowed for what remains of
// connections that were established while they were fresh.
type admission struct {
	family family
	name   string
	fresh  bool
}

// admissions returns the sets of a user.
func admissions(uid int) (all []admission) {
	for _, f := range []struct {
		family family
		digit  string
	}{{inet4, "4"}, {inet6, "6"}} {
		all = append(all, admission{f.family, fmt.Sprintf("fresh%s-%d", f.digit, uid), true}, admission{f.family, fmt.Sprintf("known%s-%d", f.digit, uid), false})
	}
	return all
}

func (a admission) set(table *nftables.Table) *nftables.Set {
	return &nftables.Set{Table: table, Name: a.name, KeyType: a.family.key, HasTimeout: a.fresh}
}

// elements returns the addresses of the set's family as its elements.
func (a admission) elements(addresses admitted) (all []nftables.SetElement) {
	for ip := range addresses {
		if ip.BitLen() == int(a.family.length)*8 {
			e := nftables.SetElement{Key: ip.AsSlice()}
			if a.fresh {
				e.Timeout = egress.AdmittedFor
			}
			all = append(all, e)
		}
	}
	return all
}

// Admit allows connections of a user with a resolver to the addresses in add for five
// minutes, counted anew from each call, and what was established by then afterwards. The
// addresses in forget are no longer allowed. It does nothing for a user without a resolver.
func (f *Firewall) Admit(uid int, add, forget []netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limits[uid].Resolver == 0 {
		return nil
	}
	if f.admitted[uid] == nil {
		f.admitted[uid] = admitted{}
	}
	c := f.admitted[uid].change(add, forget)
	missing, err := f.ensure()
	if missing || err != nil {
		return err // with the table, the addresses are installed
	}
	return c.apply(uid, f.begin)
}

// admitted are the addresses that a user was admitted to and that were not forgotten.
type admitted map[netip.Addr]struct{}

// change changes them, and returns what the kernel's sets need for it.
func (a admitted) change(add, forget []netip.Addr) admittance {
	c := admittance{add: admitted{}, had: admitted{}, forgotten: admitted{}}
	for _, ip := range forget {
		c.forgotten[ip] = struct{}{}
		delete(a, ip)
	}
	for _, ip := range add {
		if _, ok := a[ip]; ok {
			c.had[ip] = struct{}{}
		}
		c.add[ip] = struct{}{}
		a[ip] = struct{}{}
	}
	return c
}

// admittance is a change of a user's sets. Those in had are in all sets, and those in
// forgotten at least in known.
type admittance struct{ add, had, forgotten admitted }

// apply changes the sets of a user. begin returns a builder of one transaction.
func (c admittance) apply(uid int, begin func() (*builder, error)) error {
	// An element that exists keeps its time. One whose time has come cannot be removed.
	err := c.once(uid, begin)
	if errors.Is(err, unix.ENOENT) {
		err = c.each(uid, begin)
	}
	return fault.Wrap(err, fault.Internal, "firewall.admit", "the rules of nftables for the addresses of a host cannot be set")
}

// once is apply in one transaction.
func (c admittance) once(uid int, begin func() (*builder, error)) error {
	b, err := begin()
	if err != nil {
		return err
	}
	for _, a := range admissions(uid) {
		set := a.set(b.table)
		if a.fresh {
			err = errors.Join(err, deleteElements(b.kernel, set, a.elements(c.had)))
		} else {
			err = errors.Join(err, deleteElements(b.kernel, set, a.elements(c.forgotten)))
		}
		if elements := a.elements(c.add); len(elements) > 0 {
			err = errors.Join(err, b.kernel.SetAddElements(set, elements))
		}
	}
	if err != nil {
		return err
	}
	return b.kernel.Flush()
}

// each is apply for one address after the other, of which some have expired.
func (c admittance) each(uid int, begin func() (*builder, error)) error {
	for ip := range c.add {
		one := admitted{ip: {}}
		err := admittance{add: one, had: one}.once(uid, begin)
		if errors.Is(err, unix.ENOENT) {
			err = admittance{add: one}.once(uid, begin)
		}
		if err != nil {
			return err
		}
	}
	return admittance{forgotten: c.forgotten}.once(uid, begin)
}

func deleteElements(kernel *nftables.Conn, set *nftables.Set, elements []nftables.SetElement) error {
	if len(elements) == 0 {
		return nil
	}
	for i := range elements {
		elements[i].Timeout = 0
	}
	return kernel.SetDeleteElements(set, elements)
}

// Report counts a refused name of a user, and notifies the user's watcher.
func (f *Firewall) Report(uid int, r egress.Refusal) {
	f.names.Add(1)
	f.refusals.notify(uid, r)
}
