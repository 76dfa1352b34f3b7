//go:build linux

package firewall

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/freeport"
)

// answering answers every datagram with text, and every stream, at the same port of 127.0.0.1
// and ::1.
func answering(t *testing.T, text string) (port uint16) {
	t.Helper()
	number, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		p, err := net.ListenPacket("udp", net.JoinHostPort(host, strconv.Itoa(number)))
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", p.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close(); l.Close() })
		go func() {
			for {
				_, from, err := p.ReadFrom(make([]byte, 1))
				if err != nil {
					return
				}
				_, _ = p.WriteTo([]byte(text), from)
			}
		}()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 1))
				_, _ = conn.Write([]byte(text))
				conn.Close()
			}
		}()
	}
	return uint16(number)
}

// Queries of a user with a resolver get there whatever their address is. Only admitted
// addresses can be reached.
func TestResolver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can limit connections")
		return
	}
	mine, other := answering(t, "mine"), answering(t, "other")
	port, echoes := serve(t), echo(t)
	f, err := Open(Users{first, 10}, Rules{Policy: egress.Policy{Private: true}, Resolvers: []netip.Addr{netip.MustParseAddr("192.0.2.53")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.CanRedirect(); err != nil {
		t.Fatal(err)
	}
	if ruleset := list(t, f); strings.Contains(ruleset, "type nat") {
		t.Errorf("without need there is a chain for translation:\n%s", ruleset)
	}
	hosts := egress.Limits{Lists: []egress.List{{AllowHosts: []string{"a.example"}, Allow: []netip.Prefix{netip.MustParsePrefix("127.9.0.0/16")}}}, Resolver: mine}
	limit := func(uid int, l egress.Limits) {
		t.Helper()
		if err := f.Limit(uid, l); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(uid uint32, network, to, want string) {
		t.Helper()
		if got := as(t, uid, network, to); got != want {
			t.Errorf("user %d, %s %s: %s, want %s", uid-first, network, to, got, want)
		}
	}
	at := func(ip string) string { return net.JoinHostPort(ip, fmt.Sprint(port)) }
	limit(limitedUser, hosts)
	limit(limitedUser+1, egress.Limits{Lists: []egress.List{{DenyHosts: []string{"a.example"}}}, Resolver: other})
	for _, server := range []string{"192.0.2.53:53", "127.0.0.1:53", "169.254.169.254:53", "[::1]:53", "8.8.8.8:53"} {
		for uid, want := range map[uint32]string{limitedUser: "mine", limitedUser + 1: "other"} {
			expect(uid, "ask udp", server, want)
			expect(uid, "ask tcp", server, want)
		}
	}
	for _, network := range []string{"udp", "tcp"} { // a page may not ask a resolver itself
		expect(limitedUser, "ask "+network, fmt.Sprint("127.0.0.1:", mine), "refused")
		expect(limitedUser+2, "ask "+network, fmt.Sprint("127.0.0.1:", mine), "refused")
		expect(limitedUser, "ask "+network, "127.0.0.1:853", "refused")
		for _, host := range []string{"127.0.0.1", "::1"} { // nor may another user of the machine
			expect(first+10, "ask "+network, net.JoinHostPort(host, fmt.Sprint(mine)), "refused")
		}
	}
	expect(limitedUser, "tcp", at("127.0.0.1"), "refused")
	expect(limitedUser, "tcp", at("::1"), "refused")
	expect(limitedUser, "udp", at("127.5.5.5"), "refused")
	expect(limitedUser, "tcp", at("127.9.0.1"), "reached") // by its network
	expect(limitedUser+1, "tcp", at("127.0.0.1"), "reached")
	admit := func(add, forget string) {
		t.Helper()
		parse := func(text string) (all []netip.Addr) {
			for _, a := range strings.Fields(text) {
				all = append(all, netip.MustParseAddr(a))
			}
			return all
		}
		if err := f.Admit(limitedUser, parse(add), parse(forget)); err != nil {
			t.Fatal(err)
		}
	}
	admit("127.0.0.1 ::1", "")
	admit("127.0.0.1 127.0.0.2", "")
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		expect(limitedUser, "tcp", at(ip), "reached")
	}
	limit(limitedUser, hosts) // the same
	expect(limitedUser, "tcp", at("127.0.0.2"), "reached")
	expect(limitedUser, "tcp", at("127.0.0.3"), "refused")

	// When an address has expired, what is established stays, and nothing new comes.
	held := hold(t, limitedUser, fmt.Sprint("127.0.0.2:", echoes))
	expire(t, f, limitedUser, "127.0.0.2")
	expect(limitedUser, "tcp", at("127.0.0.2"), "refused")
	held("reached")
	admit("127.0.0.2", "") // it is known, but not fresh
	expect(limitedUser, "tcp", at("127.0.0.2"), "reached")
	held = hold(t, limitedUser, fmt.Sprint("127.0.0.2:", echoes))
	expire(t, f, limitedUser, "127.0.0.2")
	admit("127.0.0.3", "127.0.0.2")
	expect(limitedUser, "tcp", at("127.0.0.3"), "reached")
	held("refused")

	// The addresses are installed again with the rules.
	kernel, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	kernel.DelTable(f.table())
	if err := kernel.Flush(); err != nil {
		t.Fatal(err)
	}
	admit("127.0.0.4", "")
	for _, ip := range []string{"127.0.0.1", "127.0.0.3", "127.0.0.4"} {
		expect(limitedUser, "tcp", at(ip), "reached")
	}
	expect(limitedUser, "ask udp", "192.0.2.53:53", "mine")

	// Other limits start without addresses.
	hosts.Lists = append(hosts.Lists, egress.List{DenyHosts: []string{"b.example"}})
	limit(limitedUser, hosts)
	expect(limitedUser, "tcp", at("127.0.0.1"), "refused")
	hosts.Proxy = &egress.Proxy{At: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), Only: true, Loopback: true}
	limit(limitedUser, hosts)
	expect(limitedUser, "ask udp", "192.0.2.53:53", "refused")
	expect(limitedUser, "tcp", at("127.0.0.1"), "reached")
	limit(limitedUser, egress.Limits{})
	expect(limitedUser+1, "ask udp", "192.0.2.53:53", "other")
	limit(limitedUser+1, egress.Limits{})
	if ruleset := list(t, f); strings.Contains(ruleset, "type nat") {
		t.Errorf("with the last resolver gone, there is a chain for translation:\n%s", ruleset)
	}
	limit(limitedUser, egress.Limits{Lists: []egress.List{{DenyHosts: []string{"a.example"}}}, Resolver: mine})
	expect(limitedUser, "ask udp", "192.0.2.53:53", "mine")
	limit(limitedUser, egress.Limits{})
	expect(first+10, "ask udp", fmt.Sprint("127.0.0.1:", mine), "mine") // the port is nobody's
	expect(limitedUser, "tcp", at("127.0.0.1"), "reached")
	expect(limitedUser, "udp", "127.0.0.1:53", "reached")
	if ruleset := list(t, f); strings.Contains(ruleset, fmt.Sprint(limitedUser)) || strings.Contains(ruleset, "element") {
		t.Errorf("rules of a user are left:\n%s", ruleset)
	}
}

// A query of a user whose ports another one has used shortly before does not get to the
// name server that the other one asked.
func TestResolverPortsUsedBefore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can limit connections")
		return
	}
	mine, other := answering(t, "mine"), answering(t, "other")
	f, err := Open(Users{first, 10}, Rules{Policy: egress.Policy{Private: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	server, err := net.ListenPacket("udp", "127.4.4.4:53")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			_, from, err := server.ReadFrom(make([]byte, 1))
			if err != nil {
				return
			}
			_, _ = server.WriteTo([]byte("upstream"), from)
		}
	}()
	if err := f.Limit(limitedUser, egress.Limits{Lists: []egress.List{{AllowHosts: []string{"a.example"}}}, Resolver: mine}); err != nil {
		t.Fatal(err)
	}
	if err := f.Limit(limitedUser+1, egress.Limits{Lists: []egress.List{{AllowHosts: []string{"a.example"}}}, Resolver: other}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before uint32
		answer string
	}{{limitedUser + 1, "other"}, {limitedUser + 2, "upstream"}} {
		free, err := net.ListenPacket("udp", "127.0.0.1:0") // a new port each time: the kernel remembers them
		if err != nil {
			t.Fatal(err)
		}
		how := "ask udp " + free.LocalAddr().String()
		free.Close()
		if got := as(t, c.before, how, "127.4.4.4:53"); got != c.answer {
			t.Errorf("the query before was answered with %s, want %s", got, c.answer)
		}
		if got := as(t, limitedUser, how, "127.4.4.4:53"); got != "refused" {
			t.Errorf("a query from the same port was answered with %s", got)
		}
	}
	if got := as(t, limitedUser, "ask udp", "127.4.4.4:53"); got != "mine" {
		t.Errorf("a query from another port was answered with %s", got)
	}
}

// ask returns the answer to a query, sent from a local address if one is given.
func ask(network, address, from string) string {
	d := net.Dialer{Timeout: 20 * time.Second}
	if from != "" {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from))
	}
	answer := make([]byte, 100)
	conn, err := d.Dial(network, address)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err = conn.Write([]byte("?")); err == nil {
			var n int
			if n, err = conn.Read(answer); err == nil {
				return string(answer[:n])
			}
		}
	}
	return failure(err)
}

func failure(err error) string {
	for _, refused := range []error{syscall.ECONNREFUSED, syscall.EPERM, syscall.ECONNRESET} {
		if errors.Is(err, refused) {
			return "refused"
		}
	}
	return err.Error()
}

// holdOpen connects, says so, and uses the connection when a line comes.
func holdOpen(address string) string {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return failure(err)
	}
	defer conn.Close()
	fmt.Println("held")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err.Error()
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err = conn.Write([]byte("?")); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if err != nil {
		return failure(err)
	}
	return "reached"
}

// hold opens a connection as a user. The result expects what happens when it is used.
func hold(t *testing.T, uid uint32, address string) (expect func(want string)) {
	t.Helper()
	self := exec.CommandContext(t.Context(), "/proc/self/exe")
	self.Env = []string{dialVariable + "=hold " + address}
	self.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	in, err := self.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := self.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewScanner(pipe)
	if !out.Scan() || out.Text() != "held" {
		t.Fatalf("no connection: %s", out.Text())
	}
	return func(want string) {
		t.Helper()
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if out.Scan(); out.Text() != want {
			t.Errorf("the connection to %s: %s, want %s", address, out.Text(), want)
		}
		if err := self.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// echo sends back what it gets, at a port of all addresses.
func echo(t *testing.T) (port uint16) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// expire ends the time of an address.
func expire(t *testing.T, f *Firewall, uid int, ip string) {
	t.Helper()
	kernel, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	fresh := admissions(uid)[0]
	if err := kernel.SetDeleteElements(fresh.set(f.table()), []nftables.SetElement{{Key: netip.MustParseAddr(ip).AsSlice()}}); err != nil {
		t.Fatal(err)
	}
	if err := kernel.Flush(); err != nil {
		t.Fatal(err)
	}
}

// list returns the names of the table's chains and sets, and the elements of those of resolvers.
func list(t *testing.T, f *Firewall) (all string) {
	t.Helper()
	kernel, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	chains, err := kernel.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chains {
		if c.Table.Name == f.name {
			all += fmt.Sprintln("chain", c.Name, "type", c.Type)
		}
	}
	sets, err := kernel.GetSets(f.table())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		all += fmt.Sprintln("set", s.Name)
		if s.Name == resolvers || s.Name == resolverPorts {
			elements, err := kernel.GetSetElements(s)
			if err != nil {
				t.Fatal(err)
			}
			for range elements {
				all += "an element\n"
			}
		}
	}
	return all
}
