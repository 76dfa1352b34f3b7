//go:build linux

package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/firewall"
)

// Order says how a namespace is set up.
type Order struct {
	// Resolvers are the name servers at addresses of the machine.
	Resolvers []netip.Addr
	// Pasta is the path of its binary, and Name how its process is recognised; see
	// [StartPasta].
	Pasta, Name string
}

// Capabilities are what the stage needs in its user namespace, as ambient capabilities: to
// use nftables and to listen below port 1024.
func Capabilities() []uintptr { return []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE} }

// roles of the sockets that the stage sends.
const (
	roleRules    = "rules"
	roleReports  = "reports"
	roleStream   = "stream"   // listens for connections to the machine
	roleResolver = "resolver" // gets queries of names, for a name server at this address
	// The sockets that queries are redirected to if the session's lists have hosts.
	roleQueries      = "queries"
	roleQueryStreams = "query streams"
)

// role says what a socket is for.
type role struct {
	Name string
	At   netip.AddrPort `json:",omitzero"` // of a resolver
}

// Enter sets up the namespace that this process is in: the loopback interface, and the
// sockets that the daemon gets over the connection. It returns when the daemon has put the
// rules in place and pasta has given the namespace a default route. The process still has its
// rights; see [GiveUp].
func Enter(o Order, daemon *os.File) error {
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("the loopback interface cannot be started: %w", err)
	}
	if err := sendSockets(o, daemon); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := daemon.Read(answer); err != nil {
		return errors.New("the daemon could not limit the addresses")
	}
	return awaitPasta()
}

// DisableAutoconf keeps interfaces that are made later in this network namespace from getting
// addresses by themselves. They would get them some time after they were made, and Chrome ends
// what it loads with ERR_NETWORK_CHANGED at each new address. Where /proc/sys cannot be written,
// that happens once, a second after the start.
func DisableAutoconf() {
	for name, value := range map[string]string{"accept_dad": "0", "addr_gen_mode": "1", "accept_ra": "0", "router_solicitations": "0"} {
		for _, interfaces := range []string{"all", "default"} {
			_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+interfaces+"/"+name, []byte(value), 0) // see above
		}
	}
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// sendSockets opens the sockets and sends them to the daemon. IPv6 may be off.
func sendSockets(o Order, daemon *os.File) error {
	var fds []int
	var roles []role
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for _, name := range []string{roleRules, roleReports} {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
		if err == nil {
			fds, roles = append(fds, fd), append(roles, role{Name: name})
			err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		}
		if err != nil {
			return fmt.Errorf("no netlink socket: %w", err)
		}
	}
	for _, s := range []struct {
		role string
		kind int
		port uint16
	}{{roleStream, unix.SOCK_STREAM, firewall.NamespacePort}, {roleQueries, unix.SOCK_DGRAM, firewall.NamespaceResolver}, {roleQueryStreams, unix.SOCK_STREAM, firewall.NamespaceResolver}} {
		for _, ip := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
			at := netip.AddrPortFrom(ip, s.port)
			fd, err := bound(s.kind, at)
			if err == nil {
				fds, roles = append(fds, fd), append(roles, role{Name: s.role})
				if s.kind == unix.SOCK_STREAM {
					err = unix.Listen(fd, unix.SOMAXCONN)
				}
			}
			if err != nil && ip.Is4() {
				return fmt.Errorf("no socket at %s: %w", at, err)
			}
		}
	}
	for _, ip := range o.Resolvers {
		at := netip.AddrPortFrom(ip, 53)
		fd, err := bound(unix.SOCK_DGRAM, at)
		if err == nil {
			fds, roles = append(fds, fd), append(roles, role{Name: roleResolver, At: at})
		} else if ip.Is4() {
			return fmt.Errorf("no socket for the name server at %s: %w", at, err)
		}
	}
	line, err := json.Marshal(roles)
	if err != nil {
		return err
	}
	raw, err := daemon.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Write(func(to uintptr) bool {
		failed = unix.Sendmsg(int(to), line, unix.UnixRights(fds...), nil, 0)
		return failed != unix.EAGAIN
	}); err != nil {
		return err
	}
	return failed
}

// bound returns a socket at an address, which the machine need not have yet.
func bound(kind int, at netip.AddrPort) (int, error) {
	family, level, option := unix.AF_INET, unix.SOL_IP, unix.IP_FREEBIND
	if at.Addr().Is6() {
		family, level, option = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_FREEBIND
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptInt(fd, level, option, 1)
	if err == nil && at.Addr().Is6() {
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err == nil {
		var to unix.Sockaddr = &unix.SockaddrInet4{Port: int(at.Port()), Addr: [4]byte(at.Addr().AsSlice()[:4])}
		if at.Addr().Is6() {
			to = &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
		}
		err = unix.Bind(fd, to)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// GiveUp removes all rights of this thread, for good: what it executes gets none back, not
// even from files that have capabilities. The caller has locked the thread.
func GiveUp() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return err
	}
	// The signal at the parent's death is lost when rights change.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	return nil
}
