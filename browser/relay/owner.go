package relay

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// owned is a listener that lets connections of one user in; others are closed.
type owned struct {
	net.Listener
	uid int
}

func (o *owned) Accept() (net.Conn, error) {
	for {
		conn, err := o.Listener.Accept()
		if err != nil {
			return nil, err
		}
		near, ok := conn.LocalAddr().(*net.TCPAddr)
		far, alsoOK := conn.RemoteAddr().(*net.TCPAddr)
		if ok && alsoOK {
			if uid, err := owner(far, near); err == nil && uid == o.uid {
				return conn, nil
			}
		}
		_ = conn.Close() // nobody of ours
	}
}

// owner is the user whose socket is at local and connected to remote, both
// IPv4 addresses of this machine (proc_net_tcp(5)).
func owner(local, remote *net.TCPAddr) (int, error) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read from
	from, to := hex(local), hex(remote)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st queues timer retransmits uid …
		fields := strings.Fields(lines.Text())
		if len(fields) > 7 && fields[1] == from && fields[2] == to {
			return strconv.Atoi(fields[7])
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, os.ErrNotExist
}

// hex is an address as the kernel prints it: the bytes of an IPv4 address as
// one number of the machine's order, and the port.
func hex(a *net.TCPAddr) string {
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(a.IP.To4()), a.Port)
}
