//go:build linux

package firewall

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
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

func openNamespace(t *testing.T, r Rules, machine []netip.Prefix) *Namespace {
	t.Helper()
	files, err := inNamespace()
	if err != nil {
		t.Fatal(err)
	}
	n, err := OpenNamespace(files[0], files[1], 1234, r, machine, func(egress.Refusal) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// The addresses of hosts are in the sets of the namespace until the limits change, also if some
// have expired.
func TestAdmitInNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make a network namespace")
		return
	}
	n := openNamespace(t, Rules{}, nil)
	elements := func() string {
		t.Helper()
		n.mu.Lock()
		defer n.mu.Unlock()
		b, err := n.begin()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]string{}
		for _, a := range admissions(namespaceUser) {
			found, err := b.kernel.GetSetElements(a.set(b.table))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range found {
				all[a.name[:6]] = append(all[a.name[:6]], bound(e))
			}
			slices.Sort(all[a.name[:6]])
		}
		return fmt.Sprint(all)
	}
	admit := func(add, forget []string, want string) {
		t.Helper()
		parse := func(texts []string) (all []netip.Addr) {
			for _, a := range texts {
				all = append(all, netip.MustParseAddr(a))
			}
			return all
		}
		if err := n.Admit(parse(add), parse(forget)); err != nil {
			t.Fatal(err)
		}
		if got := elements(); got != want {
			t.Errorf("after admitting %s and forgetting %s: %s, want %s", add, forget, got, want)
		}
	}
	limit := func(l egress.Limits, want string) {
		t.Helper()
		if err := n.Limit(l); err != nil {
			t.Fatal(err)
		}
		if got := elements(); got != want {
			t.Errorf("with the limits %v: %s, want %s", l, got, want)
		}
	}
	admit([]string{"8.8.8.8"}, nil, "map[]") // there is no resolver
	hosts := egress.Limits{Lists: []egress.List{{AllowHosts: []string{"a.example"}}}, Resolver: NamespaceResolver}
	limit(hosts, "map[]")
	admit([]string{"8.8.8.8", "2001:db8::1"}, nil, "map[fresh4:[8.8.8.8] fresh6:[2001:db8::1] known4:[8.8.8.8] known6:[2001:db8::1]]")
	limit(hosts, "map[fresh4:[8.8.8.8] fresh6:[2001:db8::1] known4:[8.8.8.8] known6:[2001:db8::1]]")
	expireIn(t, n, "8.8.8.8")
	for range 2 { // the kernel has answered the first one with errors before
		admit([]string{"8.8.8.8", "8.8.4.4", "2001:db8::1"}, nil, "map[fresh4:[8.8.4.4 8.8.8.8] fresh6:[2001:db8::1] known4:[8.8.4.4 8.8.8.8] known6:[2001:db8::1]]")
	}
	expireIn(t, n, "8.8.8.8")
	admit([]string{"9.9.9.9"}, []string{"8.8.8.8"}, "map[fresh4:[8.8.4.4 9.9.9.9] fresh6:[2001:db8::1] known4:[8.8.4.4 9.9.9.9] known6:[2001:db8::1]]")
	limit(egress.Limits{Lists: []egress.List{{AllowHosts: []string{"c.example"}}}, Resolver: NamespaceResolver}, "map[]")
	admit([]string{"8.8.8.8"}, nil, "map[fresh4:[8.8.8.8] known4:[8.8.8.8]]")
	limit(egress.Limits{}, "map[]")
	admit([]string{"8.8.8.8"}, nil, "map[]")
}

// expireIn ends the time of an IPv4 address in a namespace.
func expireIn(t *testing.T, n *Namespace, ip string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.change(func(b *builder) {
		b.err = b.kernel.SetDeleteElements(admissions(namespaceUser)[0].set(b.table), []nftables.SetElement{{Key: netip.MustParseAddr(ip).AsSlice()}})
	}); err != nil {
		t.Fatal(err)
	}
}

// The machine's networks can be replaced by others that overlap with them.
func TestSetMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make a network namespace")
		return
	}
	parse := func(networks ...string) (all []netip.Prefix) {
		for _, n := range networks {
			all = append(all, netip.MustParsePrefix(n))
		}
		return all
	}
	first := parse("8.9.10.11/32", "5.6.7.0/24", "5.6.7.8/32", "fd12::1/128")
	n := openNamespace(t, Rules{Policy: egress.Policy{OwnPorts: []uint16{8080}}}, first)
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
