//go:build linux

package firewall

import (
	"errors"
	"net/netip"
	"os"
	"reflect"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// NamespacePort is the TCP port at 127.0.0.1 and ::1 of a Chrome's network namespace at
// which connections to addresses of the machine arrive. Chrome cannot take it, because it
// is below 1024.
const NamespacePort = 1

// NamespaceResolver is the port, of UDP and TCP, at 127.0.0.1 and ::1 of a Chrome's network
// namespace to which DNS queries are redirected if the limits have a resolver. Chrome cannot
// take it either.
const NamespaceResolver = 2

// Namespace is the table of nftables in the network namespace of one Chrome. It needs no
// rights in the namespace, only two sockets from there. Its methods are safe for concurrent
// use.
type Namespace struct {
	reports *socket
	notify  func(egress.Refusal)
	done    chan struct{} // closed when no more refusals are read

	mu       sync.Mutex
	rules    *socket
	limits   egress.Limits
	admitted admitted // addresses of hosts
}

const (
	namespaceTable = "stasis"
	// reportGroup is the group of the reports. A namespace has its own groups.
	reportGroup = 1
	// machine4 and machine6 are the sets of the machine's own addresses. Those that the
	// namespace has too are recognised without them.
	machine4, machine6 = "machine4", "machine6"
	// queries is the chain that redirects DNS queries.
	queries = "queries"
	// namespaceUser is the user in the names of the sets of admitted addresses. A namespace has
	// no other.
	namespaceUser = 0
)

// OpenNamespace puts the rules in place for the processes of user uid. rules and reports are
// sockets of NETLINK_NETFILTER that a process with CAP_NET_ADMIN has opened in the
// namespace; OpenNamespace takes them over. notify is called for each reported refusal and
// must not wait. Connections that are allowed and lead to an address of the machine go to
// [NamespacePort].
func OpenNamespace(rules, reports *os.File, uid int, r Rules, machine []netip.Prefix, notify func(egress.Refusal)) (_ *Namespace, err error) {
	n := &Namespace{notify: notify, done: make(chan struct{}), admitted: admitted{}}
	if n.rules, err = newSocket(rules); err == nil {
		n.reports, err = newSocket(reports)
	}
	if err == nil {
		err = n.install(Users{First: uint32(uid), Count: 1}, r, machine)
	}
	if err == nil {
		err = n.subscribe()
	}
	if err != nil {
		return nil, errors.Join(unsupported(err), rules.Close(), reports.Close())
	}
	go n.read()
	return n, nil
}

// Close releases the sockets. The rules end with the namespace.
func (n *Namespace) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := errors.Join(n.rules.Close(), n.reports.Close())
	<-n.done
	return err
}

// begin returns a builder of one transaction. The caller holds the lock.
func (n *Namespace) begin() (*builder, error) {
	n.rules.drain()
	kernel, err := nftables.New(nftables.WithTestDial(n.rules.exchange))
	return &builder{kernel: kernel, table: &nftables.Table{Family: nftables.TableFamilyINet, Name: namespaceTable}}, err
}

func (n *Namespace) install(users Users, r Rules, machine []netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	b, err := n.begin()
	if err != nil {
		return err
	}
	b.kernel.AddTable(b.table)
	b.buildNamespace(users, r, machine)
	if b.err != nil {
		return b.err
	}
	return b.kernel.Flush()
}

// buildNamespace adds the rules. They are those of the machine's table, for one user.
// Connections to the machine's addresses are then redirected to the daemon: there is nothing at
// these addresses in the namespace.
func (b *builder) buildNamespace(users Users, r Rules, machine []netip.Prefix) {
	accept := nftables.ChainPolicyAccept
	output := b.kernel.AddChain(&nftables.Chain{Table: b.table, Name: "output", Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityMangle, Policy: &accept})
	redirect := b.kernel.AddChain(&nftables.Chain{Table: b.table, Name: "redirect", Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest, Policy: &accept})
	all := map[string]*nftables.Chain{}
	for _, name := range []string{"browsers", proxied, listed, refused, queries} {
		all[name] = b.kernel.AddChain(&nftables.Chain{Table: b.table, Name: name})
	}
	browsers, last := all["browsers"], all[refused]
	refuse := jump(last)
	// The daemon's answers at the listeners and to queries of names have the same user.
	b.rule(output, []expr.Any{&expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1}, equal([]byte{1})}, verdict(expr.VerdictAccept))
	b.rule(output, ofUsers(users), jump(browsers))

	// Only redirected queries may get to the resolver. They still have their first port. TCP to
	// this port goes to the machine; see below.
	b.rule(browsers, toPort(unix.IPPROTO_UDP, NamespaceResolver), toMachine(), refuse)
	for _, a := range admissions(namespaceUser) {
		if err := b.kernel.AddSet(a.set(b.table), nil); b.err == nil {
			b.err = err
		}
	}
	b.rule(browsers, jump(all[proxied]))
	for _, protocol := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
		b.to(browsers, single(r.Resolvers), verdict(expr.VerdictAccept), toPort(protocol, 53))
	}
	b.to(browsers, egress.Never(), refuse)
	b.addMachine(machine)
	for _, port := range r.Policy.OwnPorts {
		b.machine(browsers, toPort(unix.IPPROTO_TCP, port), refuse)
	}
	b.rule(browsers, jump(all[listed]))
	if !r.Policy.Private {
		b.to(browsers, r.Policy.Networks, verdict(expr.VerdictAccept))
		b.to(browsers, egress.NotPublic(), refuse)
		b.machine(browsers, refuse)
	}

	b.kernel.AddObj(&nftables.CounterObj{Table: b.table, Name: refused})
	b.rule(last, []expr.Any{&expr.Objref{Type: unix.NFT_OBJECT_COUNTER, Name: refused}})
	b.rule(last, []expr.Any{
		&expr.Limit{Type: expr.LimitTypePkts, Rate: reportRate, Unit: expr.LimitTimeSecond, Burst: reportBurst},
		&expr.Log{Key: 1<<unix.NFTA_LOG_GROUP | 1<<unix.NFTA_LOG_SNAPLEN, Group: reportGroup, Snaplen: reportedBytes},
	})
	b.rule(last, protocol(unix.IPPROTO_TCP), []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}})
	b.rule(last, []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}})

	b.rule(redirect, jump(all[queries])) // before all TCP to the machine
	b.rule(redirect, toMachine(), protocol(unix.IPPROTO_TCP), redirectTo(NamespacePort))
}

func redirectTo(port uint16) []expr.Any {
	return []expr.Any{&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)}, &expr.Redir{RegisterProtoMin: 1}}
}

// machine adds rules for packets to the machine: to addresses of the namespace, which are
// also addresses of the machine, and to the machine's other addresses.
func (b *builder) machine(chain *nftables.Chain, parts ...[]expr.Any) {
	b.rule(chain, append([][]expr.Any{toMachine()}, parts...)...)
	for family, name := range map[family]string{inet4: machine4, inet6: machine6} {
		b.rule(chain, append([][]expr.Any{family.destination(&nftables.Set{Table: b.table, Name: name}, false)}, parts...)...)
	}
}

func (b *builder) addMachine(networks []netip.Prefix) {
	for family, name := range map[family]string{inet4: machine4, inet6: machine6} {
		intervals, err := family.intervals(networks)
		if err == nil {
			err = b.kernel.AddSet(b.machineSet(family, name), intervals)
		}
		if b.err == nil {
			b.err = err
		}
	}
}

func (b *builder) machineSet(f family, name string) *nftables.Set {
	return &nftables.Set{Table: b.table, Name: name, KeyType: f.key, Interval: true}
}

// Limit replaces the limits of the Chrome, in one transaction of the kernel. Their resolver, if
// they have one, is at [NamespaceResolver]. Admitted addresses stay if the limits are the same.
func (n *Namespace) Limit(l egress.Limits) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	stay := reflect.DeepEqual(l, n.limits)
	err := n.change(func(b *builder) {
		for name, add := range map[string]func(*nftables.Chain){
			proxied: func(chain *nftables.Chain) { b.limitToDaemon(chain, l) },
			listed:  func(chain *nftables.Chain) { b.limitToLists(namespaceUser, chain, l) },
			queries: func(chain *nftables.Chain) { b.redirectQueries(chain, l) },
		} {
			chain := &nftables.Chain{Table: b.table, Name: name}
			b.kernel.FlushChain(chain)
			add(chain)
		}
		if !stay {
			for _, a := range admissions(namespaceUser) {
				b.kernel.FlushSet(a.set(b.table))
			}
		}
	})
	if err != nil {
		return fault.Wrap(err, fault.Internal, "firewall.limit", "the rules of nftables for the session cannot be set")
	}
	if n.limits = l; !stay {
		clear(n.admitted)
	}
	return nil
}

// redirectQueries adds rules that redirect the DNS queries of a Chrome with a resolver.
func (b *builder) redirectQueries(chain *nftables.Chain, l egress.Limits) {
	if l.Resolver == 0 {
		return
	}
	for _, number := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
		b.rule(chain, toPort(number, dnsPort), redirectTo(l.Resolver))
	}
}

// Admit is [Firewall.Admit] for this Chrome.
func (n *Namespace) Admit(add, forget []netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.limits.Resolver == 0 {
		return nil
	}
	return n.admitted.change(add, forget).apply(namespaceUser, n.begin)
}

// SetMachine replaces the machine's own addresses.
func (n *Namespace) SetMachine(networks []netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.change(func(b *builder) {
		for family, name := range map[family]string{inet4: machine4, inet6: machine6} {
			set := b.machineSet(family, name)
			b.kernel.FlushSet(set)
			intervals, err := family.intervals(networks)
			if err == nil && len(intervals) > 0 {
				err = b.kernel.SetAddElements(set, intervals)
			}
			if b.err == nil {
				b.err = err
			}
		}
	})
	return fault.Wrap(err, fault.Internal, "firewall.machine", "the machine's addresses cannot be set in the rules of nftables")
}

// change makes one transaction. The caller holds the lock.
func (n *Namespace) change(add func(*builder)) error {
	b, err := n.begin()
	if err != nil {
		return err
	}
	if add(b); b.err != nil {
		return b.err
	}
	return b.kernel.Flush()
}

// Refused returns how many packets were refused.
func (n *Namespace) Refused() (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b, err := n.begin()
	if err != nil {
		return 0, err
	}
	return countRefused(b.kernel, b.table)
}
