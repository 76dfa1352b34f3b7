//go:build linux

package netns

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/firewall"
	"github.com/stasisd/stasis/browser/resolver"
	"github.com/stasisd/stasis/fault"
)

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
	l.network.readmit() // before Chrome asks for a name
	_, err = l.conn.Write([]byte{1})
	return err
}

// use takes over the sockets.
func (l *Link) use(all []received) error {
	var files [2]*os.File
	var queries []net.PacketConn
	var queryStreams []net.Listener
	w := l.network
	for _, s := range all {
		switch s.Name {
		case roleRules:
			files[0] = s.file
		case roleReports:
			files[1] = s.file
		case roleStream, roleQueryStreams:
			listener, err := net.FileListener(s.file)
			if err := errors.Join(err, s.file.Close()); err != nil {
				return err
			}
			if !l.keep(listener) {
				return net.ErrClosed
			}
			if s.Name == roleQueryStreams {
				queryStreams = append(queryStreams, listener)
				continue
			}
			l.served.Go(func() { l.forward(listener) })
		case roleResolver, roleQueries:
			conn, err := net.FilePacketConn(s.file)
			if err := errors.Join(err, s.file.Close()); err != nil {
				return err
			}
			if !l.keep(conn) {
				return net.ErrClosed
			}
			if s.Name == roleQueries {
				queries = append(queries, conn)
				continue
			}
			l.served.Go(func() { l.resolve(conn, s.At) })
		}
	}
	server := resolver.Serve(w.answer, queries, queryStreams)
	l.served.Go(func() { <-l.ctx.Done(); server.Close() })
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
