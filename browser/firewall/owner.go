package firewall

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// owned is the name of the abstract socket that says which users a daemon has. The socket
// ends with its process.
func (u Users) owned() string { return fmt.Sprintf("@stasis-uids-%d-%d", u.First, u.Count) }

// overlaps reports whether two ranges have a user in common.
func (u Users) overlaps(other Users) bool {
	return uint64(u.First) < uint64(other.First)+uint64(other.Count) && uint64(other.First) < uint64(u.First)+uint64(u.Count)
}

// own takes the users for this process until the listener is closed. The error is Config if
// another process has some of them. If two processes begin at the same moment, both can get
// the error.
func own(users Users) (net.Listener, error) {
	owned, err := net.Listen("unix", users.owned())
	if err != nil {
		return nil, taken(users, err)
	}
	// The process's own list is that of its main thread, which may be in another namespace.
	sockets, err := os.ReadFile("/proc/thread-self/net/unix")
	if err == nil {
		if other, found := users.overlapping(string(sockets)); found {
			err = fmt.Errorf("its uids are %d to %d", other.First, other.First+other.Count-1)
		}
	}
	if err != nil {
		_ = owned.Close() // nothing connects to it
		return nil, taken(users, err)
	}
	return owned, nil
}

// overlapping looks in the kernel's list of sockets (/proc/net/unix) for another range with
// one of the users.
func (u Users) overlapping(sockets string) (Users, bool) {
	for line := range strings.Lines(sockets) {
		fields := strings.Fields(line)
		var other Users
		if len(fields) == 0 {
			continue
		}
		name := fields[len(fields)-1]
		if _, err := fmt.Sscanf(name, "@stasis-uids-%d-%d", &other.First, &other.Count); err != nil || name == u.owned() {
			continue
		}
		if u.overlaps(other) {
			return other, true
		}
	}
	return Users{}, false
}

func taken(users Users, err error) error {
	return fault.Wrap(err, fault.Config, "firewall.open", fmt.Sprintf("--uid-base: another daemon uses some of the uids %d to %d; give each daemon its own range, or --egress off",
		users.First, users.First+users.Count-1))
}
