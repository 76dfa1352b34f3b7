//go:build linux

// Package firewall keeps Chromes from addresses that their [egress.Policy] does not allow,
// with nftables, by the users that the Chromes run as. It works for every protocol and for
// whatever a page, a service worker or an extension sends, because the kernel decides. The
// process needs CAP_NET_ADMIN in the network namespace of the Chromes.
//
// What is refused fails at once: TCP connections are reset, other packets are answered with
// "port unreachable".
package firewall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// Users is a range of user IDs: First, First+1, …
type Users struct {
	First, Count uint32
}

// Rules says what the Chromes of a daemon may connect to.
type Rules struct {
	Policy egress.Policy
	// Resolvers are the machine's name servers. Port 53 of them is allowed whatever the
	// policy says: without names there are no sites.
	Resolvers []netip.Addr
}

// Firewall is a table of nftables. Its methods are safe for concurrent use.
type Firewall struct {
	name     string
	users    Users
	rules    Rules
	refusals *refusals
	owned    net.Listener // tells other daemons that the users are taken

	names atomic.Uint64 // refused names

	mu       sync.Mutex
	limits   map[int]egress.Limits // of the users that have some
	admitted map[int]admitted      // addresses of hosts, of the users with a resolver
	// redirects: the table has what redirects DNS queries. Without need it is not there: it
	// makes the kernel track the connections of the whole machine.
	redirects bool
}

// refused is the name of the chain that refuses, and of the counter of refused packets.
const refused = "refused"

// Open puts the rules in place for all processes of the users. What a Firewall of the same
// users left there is replaced in the same step, so that there is no moment without rules.
// The rules outlive the process; see [Firewall.Close] and [Firewall.Leave]. Errors:
// Unsupported if the system does not allow or have nftables, Config if another process has
// a Firewall of some of the users.
func Open(users Users, r Rules) (*Firewall, error) {
	f := &Firewall{name: fmt.Sprintf("stasis-%d", users.First), users: users, rules: r, limits: map[int]egress.Limits{}, admitted: map[int]admitted{}}
	var err error
	if f.owned, err = own(users); err != nil {
		return nil, err
	}
	if f.refusals, err = newRefusals(); err != nil {
		return nil, errors.Join(unsupported(err), f.owned.Close())
	}
	if err := f.install(); err != nil {
		return nil, errors.Join(unsupported(err), f.Leave())
	}
	return f, nil
}

func (f *Firewall) table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: f.name}
}

// begin returns a builder of one transaction.
func (f *Firewall) begin() (*builder, error) {
	kernel, err := nftables.New()
	return &builder{kernel: kernel, table: f.table()}, err
}

// install replaces the whole table, with the limits of all users.
func (f *Firewall) install() error {
	b, err := f.begin()
	if err != nil {
		return err
	}
	// Adding makes sure that there is one to delete.
	b.kernel.AddTable(b.table)
	b.kernel.DelTable(b.table)
	b.kernel.AddTable(b.table)
	b.build(f.users, f.rules, f.refusals.group)
	redirects := f.needsResolvers()
	if redirects {
		b.addResolvers()
	}
	for uid, l := range f.limits {
		if l.Resolver != 0 {
			b.addResolver(uid, l, f.admitted[uid])
		}
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

// Ensure installs the rules again if another program has removed them, such as a restart of
// the machine's own firewall. It reports whether they were missing.
func (f *Firewall) Ensure() (missing bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ensure()
}

// ensure is Ensure. The caller holds the lock.
func (f *Firewall) ensure() (missing bool, err error) {
	kernel, err := nftables.New()
	if err != nil {
		return false, unsupported(err)
	}
	tables, err := kernel.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, unsupported(err)
	}
	if slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == f.name }) {
		return false, nil
	}
	if err := f.install(); err != nil {
		return true, unsupported(err)
	}
	return true, nil
}

// Refused returns how many packets and names were refused.
func (f *Firewall) Refused() (uint64, error) {
	kernel, err := nftables.New()
	if err != nil {
		return 0, unsupported(err)
	}
	packets, err := countRefused(kernel, f.table())
	return packets + f.names.Load(), err
}

func countRefused(kernel *nftables.Conn, table *nftables.Table) (uint64, error) {
	found, err := kernel.GetObject(&nftables.CounterObj{Table: table, Name: refused})
	count, ok := found.(*nftables.CounterObj)
	if err != nil || !ok {
		return 0, fault.Wrap(err, fault.Internal, "firewall.refused", "the counter of nftables cannot be read")
	}
	return count.Packets, nil
}

// Close removes the rules. The Chromes must have ended.
func (f *Firewall) Close() error {
	kernel, err := nftables.New()
	if err == nil {
		kernel.DelTable(f.table())
		err = kernel.Flush()
	}
	err = fault.Wrap(err, fault.Internal, "firewall.close", "the rules of nftables cannot be removed")
	return errors.Join(err, f.Leave())
}

// Leave stops without removing the rules, because Chromes may still run.
func (f *Firewall) Leave() error { return errors.Join(f.refusals.close(), f.owned.Close()) }

// Supported returns nil if this process can use nftables, else why not. It changes nothing.
func Supported() error {
	kernel, err := nftables.New()
	if err == nil {
		_, err = kernel.ListTablesOfFamily(nftables.TableFamilyINet)
	}
	if err != nil {
		return unsupported(err)
	}
	return nil
}

func unsupported(err error) error {
	return fault.Wrap(err, fault.Unsupported, "firewall.open",
		"nftables cannot be used; it needs the capability CAP_NET_ADMIN and the kernel module nf_tables ("+err.Error()+")")
}

// builder adds rules. Its first error is kept.
type builder struct {
	kernel *nftables.Conn
	table  *nftables.Table
	maps   map[string]*nftables.Set // see byUser
	err    error
}

func (b *builder) build(users Users, r Rules, reports uint16) {
	accept := nftables.ChainPolicyAccept
	output := b.kernel.AddChain(&nftables.Chain{Table: b.table, Name: "output", Type: nftables.ChainTypeFilter,
		// Before the machine's own translation of addresses: Docker's resolver and the services
		// of Kubernetes are then still at the addresses that Chrome uses.
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityMangle, Policy: &accept})
	browsers := b.kernel.AddChain(&nftables.Chain{Table: b.table, Name: "browsers"})
	last := b.kernel.AddChain(&nftables.Chain{Table: b.table, Name: refused})
	refuse := jump(last)
	b.rule(output, ofUsers(users), jump(browsers))

	b.guardResolvers(browsers, output)
	b.jumpByUser(browsers, proxied)
	if len(r.Resolvers) > 0 {
		b.to(browsers, single(r.Resolvers), verdict(expr.VerdictAccept), toPort(unix.IPPROTO_UDP, 53))
		b.to(browsers, single(r.Resolvers), verdict(expr.VerdictAccept), toPort(unix.IPPROTO_TCP, 53))
	}
	b.to(browsers, egress.Never(), refuse)
	for _, port := range r.Policy.OwnPorts {
		b.rule(browsers, toMachine(), toPort(unix.IPPROTO_TCP, port), refuse)
	}
	b.jumpByUser(browsers, listed)
	if !r.Policy.Private {
		b.to(browsers, r.Policy.Networks, verdict(expr.VerdictAccept))
		b.to(browsers, egress.NotPublic(), refuse)
		b.rule(browsers, toMachine(), refuse)
	}

	b.kernel.AddObj(&nftables.CounterObj{Table: b.table, Name: refused})
	b.rule(last, []expr.Any{&expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: refused}})
	// The limit is that of each user, so that no session uses up the reports of others.
	reported := &nftables.Set{Table: b.table, Name: "reported", KeyType: nftables.TypeUID, Dynamic: true, HasTimeout: true, Timeout: time.Minute, Size: users.Count}
	if err := b.kernel.AddSet(reported, nil); b.err == nil {
		b.err = err
	}
	b.rule(last, []expr.Any{
		&expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
		&expr.Dynset{SrcRegKey: 1, SetName: reported.Name, SetID: reported.ID, Operation: unix.NFT_DYNSET_OP_UPDATE, Exprs: []expr.Any{&expr.Limit{Type: expr.LimitTypePkts, Rate: reportRate, Unit: expr.LimitTimeSecond, Burst: reportBurst}}},
		&expr.Log{Key: 1<<unix.NFTA_LOG_GROUP | 1<<unix.NFTA_LOG_SNAPLEN, Group: reports, Snaplen: reportedBytes},
	})
	b.rule(last, protocol(unix.IPPROTO_TCP), []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}})
	b.rule(last, []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}})
}

// rule adds a rule of the expressions, in order.
func (b *builder) rule(chain *nftables.Chain, parts ...[]expr.Any) {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	b.kernel.AddRule(&nftables.Rule{Table: b.table, Chain: chain, Exprs: all})
}

// to adds rules for packets to the networks.
func (b *builder) to(chain *nftables.Chain, networks []netip.Prefix, then []expr.Any, and ...[]expr.Any) {
	for _, family := range []family{inet4, inet6} {
		if set := b.set(family, networks); set != nil {
			b.rule(chain, append([][]expr.Any{family.destination(set, false)}, append(and, then)...)...)
		}
	}
}

// set adds a set of the networks of a family; nil if there are none.
func (b *builder) set(f family, networks []netip.Prefix) *nftables.Set {
	intervals, err := f.intervals(networks)
	if err == nil && len(intervals) > 0 {
		set := &nftables.Set{Table: b.table, Anonymous: true, Constant: true, Interval: true, KeyType: f.key}
		if err = b.kernel.AddSet(set, intervals); err == nil {
			return set
		}
	}
	if b.err == nil {
		b.err = err
	}
	return nil
}

// ofUsers matches packets of the users' sockets.
func ofUsers(u Users) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
		// A range compares byte by byte, and the ID is in the machine's own order.
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: binary.BigEndian.AppendUint32(nil, u.First),
			ToData: binary.BigEndian.AppendUint32(nil, u.First+u.Count-1)},
	}
}

// protocol matches a transport protocol.
func protocol(number byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal([]byte{number})}
}

// toPort matches a port of a transport protocol.
func toPort(number byte, port uint16) []expr.Any {
	return append(protocol(number), &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equal(binary.BigEndian.AppendUint16(nil, port)))
}

// toMachine matches packets to an address of the machine itself.
func toMachine() []expr.Any {
	return []expr.Any{&expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
		equal(binary.NativeEndian.AppendUint32(nil, unix.RTN_LOCAL))}
}

func equal(data []byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

func jump(to *nftables.Chain) []expr.Any {
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: to.Name}}
}

func single(addresses []netip.Addr) (all []netip.Prefix) {
	for _, ip := range addresses {
		all = append(all, netip.PrefixFrom(ip, ip.BitLen()))
	}
	return all
}
