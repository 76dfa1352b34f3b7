package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Addresses that the kernel leads to the machine are its own, also if no interface has them.
func TestLocalRoutes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make the network of this test")
		return
	}
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine, and its network too
		failed <- localRoutes(t)
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

func localRoutes(t *testing.T) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	script := `set -e
		ip link set lo up; ip tuntap add out mode tap; ip addr add 8.9.10.11/24 dev out; ip link set out up
		ip route add default via 8.9.10.1
		ip route add local 5.6.7.0/24 dev lo; ip route add local 5.6.8.0/24 dev lo src 127.0.0.1`
	_, err := os.Stat("/proc/net/if_inet6")
	six := err == nil
	if six {
		script += "\nip -6 route add local 2606:4700::/64 dev lo"
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	own := Policy{Private: true, OwnPorts: []uint16{8080}}
	for ip, want := range map[string]error{
		"5.6.7.8": ErrOwn, "5.6.8.255": ErrOwn, "::ffff:5.6.7.8": ErrOwn, "8.9.10.11": ErrOwn, "127.8.8.8": ErrOwn, "0.0.0.0": ErrOwn, "::1": ErrOwn,
		"5.6.9.1": nil, "8.9.10.12": nil, "2606:4701::1": nil,
	} {
		if err := own.Control("tcp", net.JoinHostPort(ip, "8080"), nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", ip, err, want)
		}
		if err := (Limits{}).Control(own, ip)("tcp", net.JoinHostPort(ip, "8080"), nil); !errors.Is(err, want) {
			t.Errorf("%s, for a relay: %v, want %v", ip, err, want)
		}
	}
	want := []string{"5.6.7.0/24", "5.6.8.0/24", "8.9.10.11/32", "127.0.0.0/8"}
	if six {
		want = append(want, "2606:4700::/64")
		if err := own.Control("tcp", "[2606:4700::5]:8080", nil); !errors.Is(err, ErrOwn) {
			t.Errorf("IPv6: %v", err)
		}
	}
	found := OwnNetworks()
	for _, n := range want {
		if !slices.Contains(found, netip.MustParsePrefix(n)) {
			t.Errorf("%s is not among %s", n, found)
		}
	}
	if slices.ContainsFunc(found, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr("8.9.10.12")) }) {
		t.Errorf("the machine's networks are %s", found)
	}
	return nil
}
