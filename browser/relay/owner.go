package relay

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// ownedListener is a listener that accepts connections of one Chrome only and closes
// others. If Chrome has its own user, the socket's owner identifies it. If Chrome runs as
// the daemon's user, like other Chromes, the peer's socket must be open in one of its
// processes.
type ownedListener struct {
	net.Listener
	uid int

	mu        sync.Mutex
	processes func() []int // returns Chrome's PIDs; nil before Chrome has started
}

func (o *ownedListener) Accept() (net.Conn, error) {
	for {
		conn, err := o.Listener.Accept()
		if err != nil {
			return nil, err
		}
		near, ok := conn.LocalAddr().(*net.TCPAddr)
		far, alsoOK := conn.RemoteAddr().(*net.TCPAddr)
		if ok && alsoOK && o.admits(far, near) {
			return conn, nil
		}
		_ = conn.Close() // not our Chrome
	}
}

// admits reports whether the socket at far that is connected to near belongs to our
// Chrome.
func (o *ownedListener) admits(far, near *net.TCPAddr) bool {
	at, err := find(far, near)
	if err != nil || at.uid != o.uid {
		return false
	}
	if o.uid != os.Geteuid() { // Chrome's own user; root without CAP_SYS_PTRACE could not check more
		return true
	}
	o.mu.Lock()
	processes := o.processes
	o.mu.Unlock()
	return processes != nil && at.openIn(processes())
}

// socket is an entry of /proc/net/tcp.
type socket struct {
	uid   int
	inode string
}

// find returns the socket at local that is connected to remote, both IPv4 addresses of
// this machine (proc_net_tcp(5)).
func find(local, remote *net.TCPAddr) (socket, error) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return socket{}, err
	}
	defer func() { _ = f.Close() }() // only read from
	from, to := hex(local), hex(remote)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st queues timer retransmits uid timeout inode …
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[1] == from && fields[2] == to {
			uid, err := strconv.Atoi(fields[7])
			return socket{uid, fields[9]}, err
		}
	}
	if err := lines.Err(); err != nil {
		return socket{}, err
	}
	return socket{}, os.ErrNotExist
}

// openIn reports whether one of the processes has the socket open (proc_pid_fd(5)).
func (s socket) openIn(pids []int) bool {
	for _, pid := range pids {
		folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // it has ended, or is sandboxed and has no sockets
		}
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil && to == "socket:["+s.inode+"]" {
				return true
			}
		}
	}
	return false
}

// hex formats an address as the kernel prints it: the bytes of an IPv4 address as one
// number in native byte order, and the port.
func hex(a *net.TCPAddr) string {
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(a.IP.To4()), a.Port)
}
