//go:build linux

package firewall

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/egress"
)

// inNamespace returns two netlink sockets of a new network namespace.
func inNamespace() (all [2]*os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return
		}
		for i := range all {
			var fd int
			if fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER); err != nil {
				return
			}
			all[i] = os.NewFile(uintptr(fd), "netlink")
			if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
				return
			}
		}
	}()
	<-done
	return all, err
}

// The machine's networks can be replaced by others that overlap with them.
func TestSetMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make a network namespace")
		return
	}
	files, err := inNamespace()
	if err != nil {
		t.Fatal(err)
	}
	parse := func(networks ...string) (all []netip.Prefix) {
		for _, n := range networks {
			all = append(all, netip.MustParsePrefix(n))
		}
		return all
	}
	first := parse("8.9.10.11/32", "5.6.7.0/24", "5.6.7.8/32", "fd12::1/128")
	n, err := OpenNamespace(files[0], files[1], 1234, Rules{Policy: egress.Policy{OwnPorts: []uint16{8080}}}, first, func(egress.Refusal) {})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	expect := func(want string) {
		t.Helper()
		n.mu.Lock()
		defer n.mu.Unlock()
		b, err := n.begin()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for family, name := range map[family]string{inet4: machine4, inet6: machine6} {
			elements, err := b.kernel.GetSetElements(b.machineSet(family, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range elements {
				got[bound(e)] = true
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	expect("map[5.6.7.0:true 8.9.10.11:true before 5.6.8.0:true before 8.9.10.12:true before fd12::2:true fd12::1:true]")
	for range 2 {
		if err := n.SetMachine(parse("5.6.0.0/16", "8.9.10.11/32")); err != nil {
			t.Fatal(err)
		}
		expect("map[5.6.0.0:true 8.9.10.11:true before 5.7.0.0:true before 8.9.10.12:true]")
	}
	if err := n.SetMachine(nil); err != nil {
		t.Fatal(err)
	}
	expect("map[]")
}

func bound(e nftables.SetElement) string {
	ip, _ := netip.AddrFromSlice(e.Key)
	if e.IntervalEnd {
		return "before " + ip.String()
	}
	return ip.String()
}
