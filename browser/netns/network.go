//go:build linux

package netns

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/firewall"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// Networks are the namespaces of a daemon's Chromes. Its methods are safe for concurrent
// use.
type Networks struct {
	pasta string
	rules firewall.Rules

	mu      sync.Mutex
	machine []netip.Prefix // the machine's own addresses
	live    map[*Link]bool
	refused uint64 // packets in namespaces that have ended
}

// New returns the Networks with these rules and this binary of pasta.
func New(pasta string, r firewall.Rules) *Networks {
	return &Networks{pasta: pasta, rules: r, machine: ownNetworks(), live: map[*Link]bool{}}
}

// Refused returns how many packets were refused.
func (n *Networks) Refused() (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := n.refused
	for link := range n.live {
		count, err := link.rules.Refused()
		if err != nil {
			return 0, err
		}
		sum += count
	}
	return sum, nil
}

// Watch applies changes of the machine's own addresses every interval, until ctx ends. It
// calls failed with each error.
func (n *Networks) Watch(ctx context.Context, interval time.Duration, failed func(error)) {
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if err := n.refresh(ownNetworks()); err != nil {
			failed(err)
		}
	}
}

func (n *Networks) refresh(now []netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Equal(now, n.machine) {
		return nil
	}
	for link := range n.live {
		if err := link.rules.SetMachine(now); err != nil {
			return err // the next look tries again
		}
	}
	n.machine = now
	return nil
}

// ownNetworks returns the machine's own addresses. Without them, only those count that the
// namespace has too.
func ownNetworks() []netip.Prefix {
	all := egress.OwnNetworks()
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}

// Network is what one run directory's Chrome may connect to, whether it runs or not. Its
// methods are safe for concurrent use.
type Network struct {
	all *Networks

	mu     sync.Mutex
	limits egress.Limits
	proxy  func(net.Conn)
	watch  *watcher
	link   *Link // of the running Chrome; nil: none runs
}

type watcher struct{ notify func(egress.Refusal) }

// NewNetwork returns a Network without limits beyond the daemon's rules.
func (n *Networks) NewNetwork() *Network { return &Network{all: n} }

// Order returns how the namespace of the next Chrome is set up.
func (w *Network) Order() Order {
	o := Order{Pasta: w.all.pasta}
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	for _, ip := range w.all.rules.Resolvers {
		if ip.IsLoopback() || slices.ContainsFunc(w.all.machine, func(n netip.Prefix) bool { return n.Contains(ip) }) {
			o.Resolvers = append(o.Resolvers, ip)
		}
	}
	return o
}

// Limit replaces the limits, also those of a running Chrome. Connections to the address of
// the limits' proxy are given to proxy, which closes them.
func (w *Network) Limit(l egress.Limits, proxy func(net.Conn)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limits, w.proxy = l, proxy
	if w.link == nil {
		return nil
	}
	return w.link.rules.Limit(l)
}

// Watch calls notify for the refused packets until stop. notify must not wait. It may be
// called once more after stop. There is one watcher; a later one replaces an earlier one, whose
// stop then does nothing.
func (w *Network) Watch(notify func(egress.Refusal)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := &watcher{notify}
	w.watch = own
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watch == own {
			w.watch = nil
		}
	}
}

func (w *Network) report(r egress.Refusal) {
	w.mu.Lock()
	watch := w.watch
	w.mu.Unlock()
	if watch != nil {
		watch.notify(r)
	}
}

// Link is the daemon's end of one Chrome's namespace.
type Link struct {
	network *Network
	conn    *net.UnixConn
	rules   *firewall.Namespace
	served  sync.WaitGroup
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	err     chan error // why the namespace could not be set up, or nil

	mu    sync.Mutex
	conns map[net.Conn]struct{} // forwarded
	files []io.Closer           // what accepts them
}

// Connect returns a Link for a Chrome that starts, and the end of its connection for the
// stage, which the caller closes.
func (w *Network) Connect() (_ *Link, stage *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fault.Wrap(err, fault.Internal, "netns.connect", "")
	}
	near, stage := os.NewFile(uintptr(fds[0]), "stage"), os.NewFile(uintptr(fds[1]), "daemon")
	defer func() { _ = near.Close() }() // FileConn duplicates it
	conn, err := net.FileConn(near)
	if err != nil {
		return nil, nil, errors.Join(fault.Wrap(err, fault.Internal, "netns.connect", ""), stage.Close())
	}
	l := &Link{network: w, conn: conn.(*net.UnixConn), err: make(chan error, 1), conns: map[net.Conn]struct{}{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.served.Go(func() { l.err <- l.serve() })
	return l, stage, nil
}

// Err returns why the namespace could not be set up, once that is known; nil if it was. It
// waits for it.
func (l *Link) Err() error {
	err := <-l.err
	l.err <- err
	return err
}

// serve receives the stage's sockets, puts the rules in place and lets the stage go on.
func (l *Link) serve() error {
	sockets, err := receiveSockets(l.conn)
	if err != nil {
		_ = l.conn.Close() // the stage then fails too
		return err
	}
	if err := l.use(sockets); err != nil {
		_ = l.conn.Close()
		return err
	}
	_, err = l.conn.Write([]byte{1})
	return err
}

// use takes over the sockets.
func (l *Link) use(all []received) error {
	var files [2]*os.File
	w := l.network
	for _, s := range all {
		switch s.Name {
		case roleRules:
			files[0] = s.file
		case roleReports:
			files[1] = s.file
		case roleStream:
			listener, err := net.FileListener(s.file)
			if err := errors.Join(err, s.file.Close()); err != nil {
				return err
			}
			if !l.keep(listener) {
				return net.ErrClosed
			}
			l.served.Go(func() { l.forward(listener) })
		case roleResolver:
			conn, err := net.FilePacketConn(s.file)
			if err := errors.Join(err, s.file.Close()); err != nil {
				return err
			}
			if !l.keep(conn) {
				return net.ErrClosed
			}
			l.served.Go(func() { l.resolve(conn, s.At) })
		}
	}
	if files[0] == nil || files[1] == nil {
		return errors.New("the stage sent too few sockets")
	}
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	rules, err := firewall.OpenNamespace(files[0], files[1], os.Geteuid(), w.all.rules, w.all.machine, w.report)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := rules.Limit(w.limits); err != nil {
		return errors.Join(err, rules.Close())
	}
	l.rules, w.link, w.all.live[l] = rules, l, true
	return nil
}

// keep makes Close close a socket. It closes it at once, and returns false, after Close.
func (l *Link) keep(c io.Closer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		_ = c.Close()
		return false
	}
	l.files = append(l.files, c)
	return true
}

// Close ends all connections through the namespace and waits. No process may be left in it.
// It is idempotent, and a nil Link ignores it.
func (l *Link) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	if l.ctx.Err() != nil {
		l.mu.Unlock()
		return
	}
	l.cancel()
	for _, f := range l.files {
		_ = f.Close() // ends what uses it
	}
	for c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	_ = l.conn.Close()
	l.served.Wait()
	w := l.network
	w.mu.Lock()
	if w.link == l {
		w.link = nil
	}
	w.mu.Unlock()
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if !w.all.live[l] {
		return
	}
	delete(w.all.live, l)
	if count, err := l.rules.Refused(); err == nil {
		w.all.refused += count
	}
	_ = l.rules.Close() // only sockets
}
