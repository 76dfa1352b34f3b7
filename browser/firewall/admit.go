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
func (a admission) elements(addresses map[netip.Addr]struct{}) (all []nftables.SetElement) {
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
		f.admitted[uid] = map[netip.Addr]struct{}{}
	}
	had, adding, forgotten := map[netip.Addr]struct{}{}, map[netip.Addr]struct{}{}, map[netip.Addr]struct{}{}
	for _, ip := range forget {
		forgotten[ip] = struct{}{}
		delete(f.admitted[uid], ip)
	}
	for _, ip := range add {
		if _, ok := f.admitted[uid][ip]; ok {
			had[ip] = struct{}{}
		}
		adding[ip] = struct{}{}
		f.admitted[uid][ip] = struct{}{}
	}
	missing, err := f.ensure()
	if missing || err != nil {
		return err // with the table, the addresses are installed
	}
	// An element that exists keeps its time. One whose time has come cannot be removed.
	if err = f.admit(uid, adding, had, forgotten); errors.Is(err, unix.ENOENT) {
		err = f.readmit(uid, adding, forgotten)
	}
	return fault.Wrap(err, fault.Internal, "firewall.admit", "the rules of nftables for the addresses of a host cannot be set")
}

// admit adds addresses. Those in had are in all sets, and those in forgotten at least in known.
func (f *Firewall) admit(uid int, add, had, forgotten map[netip.Addr]struct{}) error {
	kernel, err := nftables.New()
	if err != nil {
		return err
	}
	for _, a := range admissions(uid) {
		set := a.set(f.table())
		if a.fresh {
			err = errors.Join(err, deleteElements(kernel, set, a.elements(had)))
		} else {
			err = errors.Join(err, deleteElements(kernel, set, a.elements(forgotten)))
		}
		if elements := a.elements(add); len(elements) > 0 {
			err = errors.Join(err, kernel.SetAddElements(set, elements))
		}
	}
	if err != nil {
		return err
	}
	return kernel.Flush()
}

// readmit is admit one address after the other, for those of which some have expired.
func (f *Firewall) readmit(uid int, add, forgotten map[netip.Addr]struct{}) error {
	for ip := range add {
		one := map[netip.Addr]struct{}{ip: {}}
		err := f.admit(uid, one, one, nil)
		if errors.Is(err, unix.ENOENT) {
			err = f.admit(uid, one, nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return f.admit(uid, nil, nil, forgotten)
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
