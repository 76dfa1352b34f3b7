//go:build linux

package firewall

import (
	"errors"
	"os"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// netlinkBuffer is the size of one read. The kernel's answers are at most 32 KiB long.
const netlinkBuffer = 64 << 10

// socket is a netlink socket that another process has opened in its own network namespace.
// The libraries can open sockets only in namespaces that this process may enter. The kernel
// accepts messages that change nftables from a process that made the socket's user namespace
// (user_namespaces(7)), so an ordinary user's daemon may use it without entering.
type socket struct {
	file *os.File
	raw  syscall.RawConn
	buf  []byte
}

// newSocket takes over the file.
func newSocket(file *os.File) (*socket, error) {
	raw, err := file.SyscallConn()
	return &socket{file: file, raw: raw, buf: make([]byte, netlinkBuffer)}, err
}

// Close implements [netlink.Socket].
func (s *socket) Close() error { return s.file.Close() }

// Send implements [netlink.Socket].
func (s *socket) Send(m netlink.Message) error { return s.SendMessages([]netlink.Message{m}) }

// SendMessages implements [netlink.Socket].
func (s *socket) SendMessages(all []netlink.Message) error {
	var b []byte
	for _, m := range all {
		one, err := m.MarshalBinary()
		if err != nil {
			return err
		}
		b = append(b, one...)
	}
	var failed error
	err := s.raw.Write(func(fd uintptr) bool {
		failed = unix.Sendto(int(fd), b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		return failed != unix.EAGAIN
	})
	return errors.Join(err, failed)
}

// Receive implements [netlink.Socket]. Only one goroutine may call it at a time.
func (s *socket) Receive() (all []netlink.Message, err error) {
	var n int
	var failed error
	err = s.raw.Read(func(fd uintptr) bool {
		n, _, failed = unix.Recvfrom(int(fd), s.buf, 0)
		return failed != unix.EAGAIN && failed != unix.EINTR
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	parsed, err := syscall.ParseNetlinkMessage(s.buf[:n])
	for _, m := range parsed {
		all = append(all, netlink.Message{Header: netlink.Header{Length: m.Header.Len, Type: netlink.HeaderType(m.Header.Type),
			Flags: netlink.HeaderFlags(m.Header.Flags), Sequence: m.Header.Seq}, Data: append([]byte(nil), m.Data...)})
	}
	return all, err
}

// drain discards what is left of the answers to an earlier request that failed.
func (s *socket) drain() {
	_ = s.raw.Control(func(fd uintptr) {
		for {
			_, _, err := unix.Recvfrom(int(fd), s.buf, unix.MSG_DONTWAIT)
			if err != nil && err != unix.EINTR {
				return
			}
		}
	})
}

// exchange is a nltest.Func, the form in which the nftables library takes a socket: it is
// called with what is sent, and without anything to receive.
func (s *socket) exchange(sent []netlink.Message) ([]netlink.Message, error) {
	if len(sent) == 0 {
		return s.Receive()
	}
	return nil, s.SendMessages(sent)
}
