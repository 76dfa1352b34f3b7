//go:build linux

package firewall

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// limited is the name of the map from the users with limits to the chains of their rules.
const limited = "limited"

// limits returns the map, as the kernel knows it. id identifies it in the transaction that
// creates it.
func limits(table *nftables.Table) *nftables.Set {
	return &nftables.Set{Table: table, Name: limited, KeyType: nftables.TypeUID, DataType: nftables.TypeVerdict, IsMap: true}
}

// Limit replaces the limits of a user. The user's Chrome may run. It is one transaction of
// the kernel; a user without limits that gets none costs nothing.
func (f *Firewall) Limit(uid int, l egress.Limits) error {
	f.limiting.Lock()
	defer f.limiting.Unlock()
	none := l.Empty()
	if none && !f.limited[uid] {
		return nil
	}
	if err := f.replace(uid, l, none); err != nil {
		return fault.Wrap(err, fault.Internal, "firewall.limit", "the rules of nftables for the session cannot be set")
	}
	f.limited[uid] = !none
	return nil
}

func (f *Firewall) replace(uid int, l egress.Limits, none bool) error {
	kernel, err := nftables.New()
	if err != nil {
		return err
	}
	b := &builder{kernel: kernel, table: f.table()}
	chains := limits(b.table)
	chain := &nftables.Chain{Table: b.table, Name: fmt.Sprintf("user-%d", uid)}
	element := nftables.SetElement{Key: binary.NativeEndian.AppendUint32(nil, uint32(uid)), VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: chain.Name}}
	if f.limited[uid] {
		if err := kernel.SetDeleteElements(chains, []nftables.SetElement{element}); err != nil {
			return err
		}
		kernel.FlushChain(chain)
		kernel.DelChain(chain)
	}
	if !none {
		chain = kernel.AddChain(chain)
		b.limit(chain, l)
		if err := kernel.SetAddElements(chains, []nftables.SetElement{element}); err != nil {
			return err
		}
	}
	if b.err != nil {
		return b.err
	}
	return kernel.Flush()
}

// limit adds the rules of one user. Packets that they do not refuse or accept go on to the
// rules for all users.
func (b *builder) limit(chain *nftables.Chain, l egress.Limits) {
	refuse := jump(&nftables.Chain{Name: refused})
	if p := l.Proxy; p != nil {
		b.to(chain, single([]netip.Addr{p.At.Addr()}), verdict(expr.VerdictAccept), toPort(unix.IPPROTO_TCP, p.At.Port()))
		if p.Only {
			if p.Loopback {
				b.to(chain, loopback(), verdict(expr.VerdictReturn))
			}
			b.rule(chain, refuse)
		}
	}
	for _, list := range l.Lists {
		b.to(chain, list.Deny, refuse)
		if len(list.Allow) > 0 {
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
