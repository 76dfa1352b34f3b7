//go:build linux

package firewall

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

const (
	// resolvers is the name of the map from users to the ports of their resolvers, and of the
	// chain that redirects DNS queries to them.
	resolvers = "resolvers"
	// resolverPorts is the set of these ports. Only redirected packets may get there: a
	// resolver cannot see who asks, so no other user of the machine may ask it either.
	resolverPorts = "resolver-ports"
	dnsPort       = 53
)

// Bits of a connection's status and directions (linux/netfilter/nf_conntrack_common.h).
const (
	statusConfirmed = 1 << 3 // it has had a packet before this one
	statusDstNAT    = 1 << 5
	// The kernel reads one byte, and nftables v0.3.0 writes four.
	directionReply = 1 << 24
)

// CanRedirect returns nil if the DNS queries of users can be redirected, else why not. It
// changes nothing.
func (f *Firewall) CanRedirect() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.redirects {
		return nil
	}
	kernel, err := nftables.New()
	if err == nil {
		table := &nftables.Table{Family: nftables.TableFamilyINet, Name: f.name + "-probe"}
		kernel.AddTable(table)
		b := &builder{kernel: kernel, table: table}
		b.addResolvers()
		kernel.DelTable(table)
		if err = b.err; err == nil {
			err = kernel.Flush()
		}
	}
	if err != nil {
		return fault.Wrap(err, fault.Unsupported, "firewall.redirect", "egress: names of hosts need the kernel modules nft_chain_nat, nft_redir and nft_ct, and one is missing; networks can be used ("+err.Error()+")")
	}
	return nil
}

// addResolvers adds what redirects the DNS queries of users with a resolver.
func (b *builder) addResolvers() {
	chain := b.kernel.AddChain(&nftables.Chain{Table: b.table, Name: resolvers, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
	ports := b.resolverMap()
	if err := b.kernel.AddSet(ports, nil); b.err == nil {
		b.err = err
	}
	for _, number := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
		b.rule(chain, toPort(number, dnsPort), []expr.Any{&expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
			&expr.Lookup{SourceRegister: 1, DestRegister: 1, IsDestRegSet: true, SetName: ports.Name, SetID: ports.ID},
			&expr.Redir{RegisterProtoMin: 1}})
	}
}

// removeResolvers removes what addResolvers has added. No user has a resolver any more.
func (b *builder) removeResolvers() {
	chain := &nftables.Chain{Table: b.table, Name: resolvers}
	b.kernel.FlushChain(chain)
	b.kernel.DelChain(chain)
	b.kernel.DelSet(b.resolverMap())
}

// needsResolvers reports whether a user has a resolver. The caller holds the lock.
func (f *Firewall) needsResolvers() bool {
	for _, l := range f.limits {
		if l.Resolver != 0 {
			return true
		}
	}
	return false
}

func (b *builder) resolverMap() *nftables.Set {
	return &nftables.Set{Table: b.table, Name: resolvers, KeyType: nftables.TypeUID, DataType: nftables.TypeInetService, IsMap: true, KeyByteOrder: binaryutil.NativeEndian}
}

func (b *builder) resolverPortSet() *nftables.Set {
	return &nftables.Set{Table: b.table, Name: resolverPorts, KeyType: nftables.TypeInetService}
}

// guardResolvers adds the rules that refuse packets that were sent to a resolver's own port:
// by Chromes at every address of the machine, by others where resolvers listen. Those of
// others are neither counted nor reported. Redirected packets still have their first port.
func (b *builder) guardResolvers(browsers, everybody *nftables.Chain) {
	ports := b.resolverPortSet()
	if err := b.kernel.AddSet(ports, nil); b.err == nil {
		b.err = err
	}
	for number, reject := range map[byte]*expr.Reject{
		unix.IPPROTO_UDP: {Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH},
		unix.IPPROTO_TCP: {Type: unix.NFT_REJECT_TCP_RST},
	} {
		toResolver := func() []expr.Any {
			return append(protocol(number), &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
				&expr.Lookup{SourceRegister: 1, SetName: ports.Name, SetID: ports.ID})
		}
		b.rule(browsers, toResolver(), toMachine(), jump(&nftables.Chain{Name: refused}))
		b.to(everybody, single([]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}), []expr.Any{reject}, toResolver())
	}
}

// elements returns the element of a user in the map, and that of the port in the set.
func resolverElements(uid int, port uint16) (user, ports []nftables.SetElement) {
	key := binary.BigEndian.AppendUint16(nil, port)
	return []nftables.SetElement{{Key: binary.NativeEndian.AppendUint32(nil, uint32(uid)), Val: key}}, []nftables.SetElement{{Key: key}}
}

// addResolver redirects the DNS queries of a user, whose sets are empty or do not exist.
func (b *builder) addResolver(uid int, l egress.Limits, addresses admitted) {
	user, ports := resolverElements(uid, l.Resolver)
	if err := errors.Join(b.kernel.SetAddElements(b.resolverMap(), user), b.kernel.SetAddElements(b.resolverPortSet(), ports)); b.err == nil {
		b.err = err
	}
	for _, a := range admissions(uid) {
		if err := b.kernel.AddSet(a.set(b.table), a.elements(addresses)); b.err == nil {
			b.err = err
		}
	}
}

// removeResolver removes what addResolver has added. No rule uses the sets any more.
func (b *builder) removeResolver(uid int, was egress.Limits) {
	user, ports := resolverElements(uid, was.Resolver)
	user[0].Val = nil
	if err := errors.Join(b.kernel.SetDeleteElements(b.resolverMap(), user), b.kernel.SetDeleteElements(b.resolverPortSet(), ports)); b.err == nil {
		b.err = err
	}
	for _, a := range admissions(uid) {
		b.kernel.DelSet(a.set(b.table))
	}
}

// limitToResolver refuses DNS queries that are not redirected to the user's own resolver. The
// kernel translates the address of a connection's first packet only, and another user may
// have used the same ports shortly before.
func (b *builder) limitToResolver(chain *nftables.Chain, l egress.Limits) {
	accept := verdict(expr.VerdictAccept)
	for _, number := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
		b.rule(chain, toPort(number, dnsPort), status(statusConfirmed, false), accept)
		b.rule(chain, toPort(number, dnsPort), status(statusDstNAT, true),
			[]expr.Any{&expr.Ct{Key: expr.CtKeyPROTOSRC, Direction: directionReply, Register: 1}, equal(binary.BigEndian.AppendUint16(nil, l.Resolver))}, accept)
		b.rule(chain, toPort(number, dnsPort), jump(&nftables.Chain{Name: refused}))
	}
}

// status matches packets of connections that have a bit of the status, or do not have it. It
// matches no packet that belongs to no connection.
func status(bit uint32, has bool) []expr.Any {
	return masked(&expr.Ct{Key: expr.CtKeySTATUS, Register: 1}, bit, has)
}

func masked(load *expr.Ct, bit uint32, has bool) []expr.Any {
	op := expr.CmpOpEq
	if has {
		op = expr.CmpOpNeq
	}
	none := make([]byte, 4)
	return []expr.Any{load, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binary.NativeEndian.AppendUint32(nil, bit), Xor: none},
		&expr.Cmp{Op: op, Register: 1, Data: none}}
}

// outsideNamed adds rules that refuse packets to an address that is in no network of a list
// with hosts and was not admitted.
func (b *builder) outsideNamed(uid int, chain *nftables.Chain, networks []netip.Prefix, refuse []expr.Any) {
	sets := admissions(uid)
	for i, family := range []family{inet4, inet6} {
		outside := func() []expr.Any {
			all := append(family.all(), &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: family.offset, Len: family.length})
			if set := b.set(family, networks); set != nil { // one rule only can use it
				all = append(all, &expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID, Invert: true})
			}
			return append(all, &expr.Lookup{SourceRegister: 1, SetName: sets[2*i].name, Invert: true})
		}
		b.rule(chain, outside(), []expr.Any{&expr.Lookup{SourceRegister: 1, SetName: sets[2*i+1].name, Invert: true}}, refuse)
		b.rule(chain, outside(), masked(&expr.Ct{Key: expr.CtKeySTATE, Register: 1}, expr.CtStateBitESTABLISHED, false), refuse)
	}
}
