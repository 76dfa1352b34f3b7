//go:build linux

package firewall

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"go4.org/netipx"
	"golang.org/x/sys/unix"
)

// family is a version of the Internet Protocol.
type family struct {
	number byte
	key    nftables.SetDatatype
	offset uint32 // of the destination address in the header, in bytes
	length uint32 // of an address, in bytes
}

// Neither is modified.
var (
	inet4 = family{unix.NFPROTO_IPV4, nftables.TypeIPAddr, 16, 4}
	inet6 = family{unix.NFPROTO_IPV6, nftables.TypeIP6Addr, 24, 16}
)

// all matches all packets of the family.
func (f family) all() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equal([]byte{f.number})}
}

// destination matches packets to an address that is in the set, or not in it.
func (f family) destination(set *nftables.Set, not bool) []expr.Any {
	return append(f.all(),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.offset, Len: f.length},
		&expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID, Invert: not})
}

// intervals returns the elements of a set of the networks of this family. Networks that
// overlap are merged; the kernel would refuse them.
func (f family) intervals(networks []netip.Prefix) (all []nftables.SetElement, err error) {
	var set netipx.IPSetBuilder
	for _, n := range networks {
		if n.Addr().BitLen() == int(f.length)*8 {
			set.AddPrefix(n)
		}
	}
	merged, err := set.IPSet()
	if err != nil {
		return nil, err
	}
	for _, r := range merged.Ranges() {
		all = append(all, nftables.SetElement{Key: r.From().AsSlice()})
		if after := r.To().Next(); after.IsValid() { // an interval without an end goes to the last address
			all = append(all, nftables.SetElement{Key: after.AsSlice(), IntervalEnd: true})
		}
	}
	return all, nil
}
