//go:build linux

package firewall

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// The maps from users with limits to the chains of their rules. What leads to a proxy comes
// first, because a session that may use only its proxy needs no names. The lists come after
// what nobody may reach, because a list can allow private networks.
const (
	proxied = "proxied"
	listed  = "listed"
)

// byUser returns one of the maps. It exists in the kernel, or is added in the same
// transaction.
func (b *builder) byUser(name string) *nftables.Set {
	if b.maps == nil {
		b.maps = map[string]*nftables.Set{}
	}
	if b.maps[name] == nil {
		b.maps[name] = &nftables.Set{Table: b.table, Name: name, KeyType: nftables.TypeUID, DataType: nftables.TypeVerdict, IsMap: true, KeyByteOrder: binaryutil.NativeEndian}
	}
	return b.maps[name]
}

// jumpByUser adds a map and a rule that jumps to the chain that it has for the user.
func (b *builder) jumpByUser(chain *nftables.Chain, name string) {
	users := b.byUser(name)
	if err := b.kernel.AddSet(users, nil); b.err == nil {
		b.err = err
	}
	b.rule(chain, []expr.Any{&expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
		&expr.Lookup{SourceRegister: 1, IsDestRegSet: true, SetName: users.Name, SetID: users.ID}})
}

// Limit replaces the limits of a user. The user's Chrome may run. It is one transaction of
// the kernel; a user without limits that gets none costs nothing. If the rules were removed
// meanwhile, it installs them again.
func (f *Firewall) Limit(uid int, l egress.Limits) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, had := f.limits[uid]
	if !had && l.Empty() {
		return nil
	}
	if _, err := f.ensure(); err != nil {
		return err
	}
	if l.Empty() {
		delete(f.limits, uid)
	} else {
		f.limits[uid] = l
	}
	if l.Resolver == 0 || !reflect.DeepEqual(l, was) {
		delete(f.admitted, uid)
	}
	err := f.replace(uid, l, was)
	if err != nil { // the kernel's rules are not what they should be
		err = f.install()
	}
	return fault.Wrap(err, fault.Internal, "firewall.limit", "the rules of nftables for the session cannot be set")
}

// replace replaces the rules of one user, which may have had some. Admitted addresses stay
// if the limits are the same.
func (f *Firewall) replace(uid int, l, was egress.Limits) error {
	b, err := f.begin()
	if err != nil {
		return err
	}
	if !was.Empty() {
		b.unlimitUser(uid, was)
	}
	redirects := f.needsResolvers()
	switch {
	case redirects && !f.redirects:
		b.addResolvers()
	case f.redirects && !redirects:
		b.removeResolvers()
	}
	if l.Resolver != 0 {
		b.addResolver(uid, l, f.admitted[uid])
	}
	if !l.Empty() {
		b.limitUser(uid, l)
	}
	if b.err != nil {
		return b.err
	}
	if err := b.kernel.Flush(); err != nil {
		return err
	}
	f.redirects = redirects
	return nil
}

// unlimitUser removes the rules of a user's limits.
func (b *builder) unlimitUser(uid int, was egress.Limits) {
	for _, name := range []string{proxied, listed} {
		chain, element := b.ofUser(name, uid)
		if err := b.kernel.SetDeleteElements(b.byUser(name), element); b.err == nil {
			b.err = err
		}
		b.kernel.FlushChain(chain)
		b.kernel.DelChain(chain)
	}
	if was.Resolver != 0 {
		b.removeResolver(uid, was)
	}
}

// ofUser returns a user's chain for one of the maps, and its element of the map.
func (b *builder) ofUser(name string, uid int) (*nftables.Chain, []nftables.SetElement) {
	chain := &nftables.Chain{Table: b.table, Name: fmt.Sprintf("%s-%d", name, uid)}
	return chain, []nftables.SetElement{{Key: binary.NativeEndian.AppendUint32(nil, uint32(uid)), VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: chain.Name}}}
}

// limitUser adds the limits of a user, or replaces them. Packets that they neither refuse
// nor accept go on to the rules for all users.
func (b *builder) limitUser(uid int, l egress.Limits) {
	for name, limit := range map[string]func(*nftables.Chain){
		proxied: func(chain *nftables.Chain) { b.limitToDaemon(chain, l) },
		listed:  func(chain *nftables.Chain) { b.limitToLists(uid, chain, l) },
	} {
		chain, element := b.ofUser(name, uid)
		b.kernel.AddChain(chain)
		limit(chain)
		if err := b.kernel.SetAddElements(b.byUser(name), element); b.err == nil {
			b.err = err
		}
	}
}

// limitToDaemon adds the rules for what leads to the session's resolver and proxy.
func (b *builder) limitToDaemon(chain *nftables.Chain, l egress.Limits) {
	if l.Resolver != 0 && (l.Proxy == nil || !l.Proxy.Only) {
		b.limitToResolver(chain, l)
	}
	b.limitToProxy(chain, l)
}

func (b *builder) limitToProxy(chain *nftables.Chain, l egress.Limits) {
	p := l.Proxy
	if p == nil {
		return
	}
	b.to(chain, single([]netip.Addr{p.At.Addr()}), verdict(expr.VerdictAccept), toPort(unix.IPPROTO_TCP, p.At.Port()))
	if !p.Only {
		return
	}
	refuse := jump(&nftables.Chain{Name: refused})
	if !p.Loopback {
		b.rule(chain, refuse)
		return
	}
	b.outside(chain, loopback(), refuse)
	for _, protocol := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} { // a resolver of this machine
		b.rule(chain, toPort(protocol, 53), refuse)
	}
}

func (b *builder) limitToLists(uid int, chain *nftables.Chain, l egress.Limits) {
	refuse := jump(&nftables.Chain{Name: refused})
	for _, list := range l.Lists {
		b.to(chain, list.Deny, refuse)
		switch {
		case len(list.AllowHosts) > 0 && l.Resolver != 0:
			b.outsideNamed(uid, chain, list.Allow, refuse)
		case len(list.Allow)+len(list.AllowHosts) > 0:
			b.outside(chain, list.Allow, refuse)
		}
	}
	b.to(chain, l.Private, verdict(expr.VerdictAccept))
}

// outside adds rules for packets to no address of the networks.
func (b *builder) outside(chain *nftables.Chain, networks []netip.Prefix, then []expr.Any) {
	for _, family := range []family{inet4, inet6} {
		set := b.set(family, networks)
		if set == nil {
			b.rule(chain, family.all(), then)
			continue
		}
		b.rule(chain, family.destination(set, true), then)
	}
}

func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}
