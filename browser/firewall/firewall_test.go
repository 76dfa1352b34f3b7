//go:build linux

package firewall

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/nftables"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// The test binary runs itself as a user whose connections are limitedUser.
const (
	dialVariable  = "FIREWALL_TEST_DIAL"
	floodVariable = "FIREWALL_TEST_FLOOD"
	floodPackets  = 2000
)

func TestMain(m *testing.M) {
	if to := os.Getenv(dialVariable); to != "" {
		words := strings.Fields(to)
		last := len(words) - 1
		fmt.Println(dial(strings.Join(words[:last], " "), words[last]))
		return
	}
	if to := os.Getenv(floodVariable); to != "" {
		conn, err := net.Dial("udp", to)
		for range floodPackets {
			if err == nil {
				_, _ = conn.Write([]byte("?")) // it is refused
			}
		}
		return
	}
	os.Exit(m.Run())
}

// dial says whether an address can be reached. The TCP server of the test answers. That a
// datagram was sent shows that it was not refused.
func dial(network, address string) string {
	switch words := strings.Fields(network); words[0] {
	case "ask":
		return ask(words[1], address, append(words[2:], "")[0])
	case "hold":
		return holdOpen(address)
	}
	conn, err := net.Dial(network, address)
	if err == nil {
		defer conn.Close()
		if _, err = conn.Write([]byte("?")); err == nil && network == "tcp" {
			_, err = conn.Read(make([]byte, 1))
		}
	}
	switch {
	case err == nil:
		return "reached"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPERM):
		return "refused"
	}
	return err.Error()
}

// as is what a user gets who dials.
func as(t *testing.T, uid uint32, network, address string) string {
	t.Helper()
	self := exec.CommandContext(t.Context(), "/proc/self/exe")
	self.Env = []string{dialVariable + "=" + network + " " + address}
	self.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := self.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// serve answers at a TCP port of all addresses.
func serve(t *testing.T) (port uint16) {
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
			_, _ = conn.Write([]byte("!")) // the client says what it got
			conn.Close()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

const (
	first       = 1_900_000_000
	limitedUser = first + 3
	otherUser   = first + 10
)

func TestFirewall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can limit connections")
		if f, err := Open(Users{first, 10}, Rules{}); err == nil {
			t.Errorf("an ordinary user has opened %v", f)
		}
		return
	}
	port, own := serve(t), serve(t)
	var last *Firewall
	open := func(r Rules) *Firewall {
		if last != nil { // as a daemon that is killed
			if err := last.Leave(); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Open(Users{first, 10}, r)
		if err != nil {
			t.Fatal(err)
		}
		last = f
		t.Cleanup(func() { f.Close() })
		return f
	}
	at := func(host string, port uint16) string { return net.JoinHostPort(host, fmt.Sprint(port)) }
	expect := func(want string, uid uint32, addresses ...string) {
		t.Helper()
		for _, address := range addresses {
			for _, network := range []string{"tcp", "udp"} {
				if got := as(t, uid, network, address); got != want {
					t.Errorf("uid %d, %s %s: %s, want %s", uid, network, address, got, want)
				}
			}
		}
	}
	local := []string{at("127.0.0.1", port), at("127.5.5.5", port), at("::1", port), at("::ffff:127.0.0.1", port), at("0.0.0.0", port), at("::", port)}
	for _, ip := range machineAddresses(t) {
		local = append(local, at(ip.String(), port))
	}
	never := []string{at("169.254.169.254", 80), at("fd00:ec2::254", 80), at("::ffff:169.254.169.254", 80)}

	f := open(Rules{Policy: egress.Policy{OwnPorts: []uint16{own}}})
	refusals := make(chan egress.Refusal, 100)
	stop := f.Watch(limitedUser, func(r egress.Refusal) { refusals <- r })
	expect("refused", limitedUser, at("10.9.9.9", 8080), at("fd12::9", 8080))
	for _, want := range []string{"{tcp 10.9.9.9:8080 }", "{udp 10.9.9.9:8080 }", "{tcp [fd12::9]:8080 }", "{udp [fd12::9]:8080 }"} {
		if got := fmt.Sprint(<-refusals); got != want {
			t.Errorf("reported %s, want %s", got, want)
		}
	}
	// The flood of one user uses up nobody else's reports.
	flood := exec.CommandContext(t.Context(), "/proc/self/exe")
	flood.Env = []string{floodVariable + "=10.9.9.9:9"}
	flood.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: limitedUser + 1, Gid: limitedUser + 1}}
	if out, err := flood.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	as(t, limitedUser, "udp", at("10.9.9.9", 8080))
	if got := fmt.Sprint(<-refusals); got != "{udp 10.9.9.9:8080 }" {
		t.Errorf("reported %s after a flood", got)
	}
	stop()
	if n, err := f.Refused(); n < floodPackets/2 || err != nil {
		t.Errorf("%d were refused, want most of the flood; %v", n, err)
	}
	expect("refused", limitedUser, local...)
	expect("refused", limitedUser, never...)
	expect("refused", limitedUser, at("10.1.2.3", 80), at("192.168.1.1", 443), at("fd12::1", 80))
	expect("reached", otherUser, local...)

	// Rules that replace others.
	_ = open(Rules{Policy: egress.Policy{Private: true, OwnPorts: []uint16{own}}})
	expect("reached", limitedUser, local...)
	expect("refused", limitedUser, never...)
	for _, host := range []string{"127.0.0.1", "::1"} {
		if got := as(t, limitedUser, "tcp", at(host, own)); got != "refused" {
			t.Errorf("the daemon's own port: %s", got)
		}
	}
	expect("reached", otherUser, at("127.0.0.1", own))

	f = open(Rules{Policy: egress.Policy{Networks: []netip.Prefix{netip.MustParsePrefix("127.5.0.0/16"), netip.MustParsePrefix("::1/128")}, OwnPorts: []uint16{own}}})
	expect("reached", limitedUser, at("127.5.5.5", port), at("::1", port))
	expect("refused", limitedUser, at("127.0.0.1", port))
	if got := as(t, limitedUser, "tcp", at("127.5.5.5", own)); got != "refused" {
		t.Errorf("the daemon's own port in an allowed network: %s", got)
	}

	if _, err := Open(Users{first, 10}, Rules{}); !fault.Is(err, fault.Config) {
		t.Errorf("a second firewall of the same users: %v", err)
	}
	// Another program removes the rules.
	kernel, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	remove := func() {
		kernel.DelTable(f.table())
		if err := kernel.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	expect("reached", limitedUser, at("127.0.0.1", port))
	if missing, err := f.Ensure(); !missing || err != nil {
		t.Errorf("the rules are missing: %v, %v", missing, err)
	}
	if missing, err := f.Ensure(); missing || err != nil {
		t.Errorf("the rules are still missing: %v, %v", missing, err)
	}
	expect("refused", limitedUser, at("127.0.0.1", port))
	remove()
	if err := f.Limit(limitedUser, egress.Limits{Lists: []egress.List{{Deny: []netip.Prefix{netip.MustParsePrefix("127.5.5.5/32")}}}}); err != nil {
		t.Error(err)
	}
	expect("refused", limitedUser, at("127.0.0.1", port), at("127.5.5.5", port))
	remove()
	if missing, err := f.Ensure(); !missing || err != nil {
		t.Errorf("the rules are missing: %v, %v", missing, err)
	}
	expect("refused", limitedUser, at("127.5.5.5", port)) // by the user's limits
	// Another program removes only a user's part. The limits can be removed all the same.
	b := &builder{kernel: kernel, table: f.table()}
	for _, name := range []string{proxied, listed} {
		_, element := b.ofUser(name, limitedUser)
		if err := kernel.SetDeleteElements(b.byUser(name), element); err != nil {
			t.Fatal(err)
		}
	}
	if err := kernel.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Limit(limitedUser, egress.Limits{}); err != nil {
		t.Errorf("limits whose rules are gone: %v", err)
	}
	expect("refused", limitedUser, at("127.0.0.1", port)) // by the rules for all

	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	expect("reached", limitedUser, local...)
}

// machineAddresses returns the machine's addresses beside loopback and link-local ones.
func machineAddresses(t *testing.T) (all []netip.Addr) {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			all = append(all, p.Addr())
		}
	}
	return all
}

func TestResolvers(t *testing.T) {
	file := t.TempDir() + "/resolv.conf"
	for text, want := range map[string]string{
		"": "[127.0.0.1 ::1]",
		"# nameserver 1.1.1.1\nsearch x\nnameserver 10.0.0.2\nnameserver  fe80::1%eth0 # the router\nnameserver nonsense\n": "[10.0.0.2 fe80::1]",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Resolvers(file); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := Resolvers(file + "x"); err != nil || len(got) != 2 {
		t.Errorf("without a file: %v, %v", got, err)
	}
}

// Limits of one user change nothing for others, and can be replaced and removed.
func TestLimit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can limit connections")
		return
	}
	port, other := serve(t), serve(t)
	f, err := Open(Users{first, 10}, Rules{Policy: egress.Policy{Private: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	networks := func(all ...string) (list []netip.Prefix) {
		for _, n := range all {
			list = append(list, netip.MustParsePrefix(n))
		}
		return list
	}
	addresses := []string{fmt.Sprint("127.0.0.1:", port), fmt.Sprint("127.5.5.5:", port), fmt.Sprint("[::1]:", port), fmt.Sprint("127.0.0.1:", other)}
	through := func(only, loopback bool) *egress.Proxy {
		return &egress.Proxy{At: netip.MustParseAddrPort(addresses[0]), Only: only, Loopback: loopback}
	}
	if err := f.Limit(otherUser, egress.Limits{}); err != nil {
		t.Fatal(err)
	}
	// A session that may use only its proxy asks no resolver, also none of this machine.
	for want, limits := range map[string]egress.Limits{"refused": {Proxy: through(true, true)}, "reached": {Proxy: through(false, true)}} {
		if err := f.Limit(limitedUser, limits); err != nil {
			t.Fatal(err)
		}
		if got := as(t, limitedUser, "udp", "127.0.0.1:53"); got != want {
			t.Errorf("port 53 with %+v: %s, want %s", limits.Proxy, got, want)
		}
	}
	for _, test := range []struct {
		name   string
		limits egress.Limits
		want   string // of each address
	}{
		{"none", egress.Limits{}, "reached reached reached reached"},
		{"allow", egress.Limits{Lists: []egress.List{{Allow: networks("127.0.0.0/16", "127.0.0.1/32")}}}, "reached refused refused reached"},
		{"allow IPv6", egress.Limits{Lists: []egress.List{{Allow: networks("::1/128")}}}, "refused refused reached refused"},
		{"deny", egress.Limits{Lists: []egress.List{{Deny: networks("127.5.0.0/16", "::/0")}}}, "reached refused refused reached"},
		{"both", egress.Limits{Lists: []egress.List{{Allow: networks("127.0.0.0/8"), Deny: networks("127.5.5.5/32")}}}, "reached refused refused reached"},
		{"two lists", egress.Limits{Lists: []egress.List{{Allow: networks("127.0.0.0/8")}, {Allow: networks("127.5.0.0/16", "::1/128")}}}, "refused reached refused refused"},
		{"a proxy", egress.Limits{Proxy: through(false, false)}, "reached reached reached reached"},
		{"a proxy only", egress.Limits{Proxy: through(true, false)}, "reached refused refused refused"},
		{"a proxy and loopback", egress.Limits{Proxy: through(true, true)}, "reached reached reached reached"},
		{"a proxy and a list", egress.Limits{Proxy: through(false, false), Lists: []egress.List{{Allow: networks("::1/128")}}}, "reached refused reached refused"},
		{"a proxy only, loopback, and a list", egress.Limits{Proxy: through(true, true), Lists: []egress.List{{Deny: networks("127.0.0.0/8")}}}, "reached refused reached refused"},
		{"none again", egress.Limits{}, "reached reached reached reached"},
		{"none once more", egress.Limits{}, "reached reached reached reached"},
	} {
		if err := f.Limit(limitedUser, test.limits); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var got, others []string
		for _, a := range addresses {
			got, others = append(got, as(t, limitedUser, "tcp", a)), append(others, as(t, limitedUser+1, "tcp", a))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		if strings.Contains(strings.Join(others, " "), "refused") {
			t.Errorf("%s: another user gets %s", test.name, others)
		}
	}
}
