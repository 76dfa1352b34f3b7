//go:build linux

package netns

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxForwarded bounds the connections of one Chrome to the machine itself.
	maxForwarded = 1000
	// dialTimeout bounds how long a connection within the machine may take.
	dialTimeout = 10 * time.Second
)

// forward accepts the connections that the rules have redirected to the listener, and makes them
// again outside, to where Chrome wanted to connect.
func (l *Link) forward(listener net.Listener) {
	places := make(chan struct{}, maxForwarded)
	for {
		conn, err := listener.Accept()
		if err != nil {
			if l.ctx.Err() != nil {
				return
			}
			// Too many open files, for instance.
			select {
			case <-l.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		select {
		case places <- struct{}{}:
			l.served.Go(func() {
				defer func() { <-places }()
				l.forwardOne(conn.(*net.TCPConn))
			})
		default:
			reset(conn.(*net.TCPConn))
		}
	}
}

func (l *Link) forwardOne(near *net.TCPConn) {
	to, err := destination(near)
	if err != nil || !l.track(near) {
		reset(near)
		return
	}
	w := l.network
	w.mu.Lock()
	limits, proxy := w.limits, w.proxy
	w.mu.Unlock()
	if limits.Proxy != nil && to == limits.Proxy.At && proxy != nil {
		l.untrack(near)
		proxy(near)
		return
	}
	defer l.untrack(near)
	// The rules have let the connection pass. Only the daemon's own ports are checked again,
	// because a name server has no other rule.
	policy := w.all.rules.Policy
	policy.Private = true
	dialer := net.Dialer{Timeout: dialTimeout, Control: policy.Control}
	conn, err := dialer.DialContext(l.ctx, "tcp", to.String())
	if err != nil {
		reset(near)
		return
	}
	far := conn.(*net.TCPConn)
	if !l.track(far) {
		_ = far.Close()
		return
	}
	defer l.untrack(far)
	var up sync.WaitGroup
	up.Go(func() { copyHalf(far, near) })
	copyHalf(near, far)
	up.Wait()
	_ = near.Close()
	_ = far.Close()
}

// copyHalf copies from a connection until its end, and then ends that direction of the
// other. After an error both end.
func copyHalf(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		reset(from)
		return
	}
	_ = to.CloseWrite() // the other side notices what is lost
}

// reset closes a connection so that the other side sees that it failed.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// track makes Close end the connection. It returns false after Close.
func (l *Link) track(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *Link) untrack(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// destination returns where a connection was going before the rules led it to a listener.
func destination(conn *net.TCPConn) (to netip.AddrPort, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return to, err
	}
	six := conn.LocalAddr().(*net.TCPAddr).IP.To4() == nil
	failed := error(unix.EINVAL)
	err = raw.Control(func(fd uintptr) {
		if six {
			var a unix.RawSockaddrInet6
			if failed = originalDestination(fd, unix.SOL_IPV6, unsafe.Pointer(&a), unsafe.Sizeof(a)); failed == nil {
				to = netip.AddrPortFrom(netip.AddrFrom16(a.Addr), ntohs(a.Port))
			}
			return
		}
		var a unix.RawSockaddrInet4
		if failed = originalDestination(fd, unix.SOL_IP, unsafe.Pointer(&a), unsafe.Sizeof(a)); failed == nil {
			to = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), ntohs(a.Port))
		}
	})
	return to, errors.Join(err, failed)
}

// originalDestination calls getsockopt with SO_ORIGINAL_DST or IP6T_SO_ORIGINAL_DST, which
// have the same number.
func originalDestination(fd uintptr, level int, into unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, uintptr(level), unix.SO_ORIGINAL_DST, uintptr(into), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ntohs returns a port that the kernel has written in the order of the network.
func ntohs(port uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&port))
	return uint16(b[0])<<8 | uint16(b[1])
}
