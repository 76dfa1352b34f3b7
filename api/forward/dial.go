package forward

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// silence is how long the machine of a node may acknowledge nothing until a connection to it is
// given up. The kernel acknowledges also for a node that is stopped or busy.
const silence = 20 * time.Second

// dialer connects to nodes. If the network between two nodes is cut, packets are lost without an
// error. Without these limits a call on a connection from before the cut would wait for a
// quarter of an hour (tcp_retries2 in tcp(7)), and a CDP client would not notice.
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         dialPatience,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / 5, Count: 5},
		Control: func(_, _ string, c syscall.RawConn) (err error) {
			if failed := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
			}); failed != nil {
				return failed
			}
			return err
		},
	}
}
