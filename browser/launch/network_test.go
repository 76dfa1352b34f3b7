package launch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"

	"github.com/stasisd/stasis/browser/firewall"
	"github.com/stasisd/stasis/browser/netns"
	"github.com/stasisd/stasis/browser/resolver"
	"github.com/stasisd/stasis/egress"
)

// networkUser is the ordinary user of these tests.
const networkUser = 310901

// outside is the address of a site that is not at loopback, in the network of inNetwork. It
// belongs to the machine there, because no other machine is at hand.
const outside = "8.9.10.11"

// inNetwork returns a command that runs a helper as an ordinary user in a separate network
// with a way out, where everybody may open /dev/net/tun.
func inNetwork(t *testing.T, verb, root string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make the network of this test")
	}
	if _, err := netns.FindPasta(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(root, networkUser, networkUser); err != nil {
		t.Fatal(err)
	}
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	cmd := exec.Command("unshare", "--mount", "--net", "--", "sh", "-c", fmt.Sprintf(`set -e
		mount -t tmpfs none /mnt; mknod -m 666 /mnt/tun c 10 200; mount --bind /mnt/tun /dev/net/tun; umount -l /mnt
		echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start
		ip link set lo up; ip addr add %s/32 dev lo; ip route add local 5.6.7.0/24 dev lo
		ip link add out type veth peer name beyond; ip link set beyond up; ip addr add 192.0.2.77/24 dev out; ip link set out up; ip route add default via 192.0.2.1
		ip addr add 2001:db8:77::77/64 dev out nodad; ip route add default via 2001:db8:77::1
		exec setpriv --reuid %d --regid %d --clear-groups -- "$@"`, outside, networkUser, networkUser), "sh", "/proc/self/fd/3", helperArg, verb, root)
	cmd.ExtraFiles, cmd.Stderr, cmd.Dir = []*os.File{own}, os.Stderr, "/"
	return cmd
}

// finding is what a helper finds, by the name of the attempt.
type finding map[string]string

// TestNetwork starts a program instead of Chrome, which tries what its namespace allows.
func TestNetwork(t *testing.T) {
	root := shortTemp(t)
	raw, err := inNetwork(t, "network", root).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got finding
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	const refused = "connection refused"
	want := finding{
		"capabilities": "0000000000000000", "flush": "fails", "flush in a nested user namespace": "fails",
		"ip link delete out": "fails", "the rules are still there": "<nil>",
		"outside": "hello", "loopback": "hello", "loopback, IPv6": "hello", "other loopback": refused, "metadata": refused, "private": refused, "nothing there": "reset",
		"the daemon's port, loopback": refused, "the daemon's port, outside": refused, "the daemon's port, at no interface": refused,
		"name server, datagram": "answer", "name server, connection": "hello", "another name server": "not permitted", "datagram outside": "answer",
		"outside, denied": refused, "loopback, denied": refused, "loopback, allowed again": "hello",
		"proxy": "proxied", "outside, with a proxy": refused, "loopback, with a proxy": refused, "the network": "one refused packet or more",
		"hosts: a query before them": "answer", "hosts: a query from the same port": "not permitted", "hosts: outside, before its name": refused, "hosts: outside": "hello", "hosts: loopback": refused,
		"hosts: refused": "dns b.example, dns inside.example 127.0.0.2", "hosts: asked for": "a.example, inside.example",
		"denied hosts: the resolver's own port": "not permitted", "denied hosts: the resolver's own port, IPv6": "not permitted", "denied hosts: the resolver's own port, connection": "reset",
		"hosts: again": "hello", "hosts: a new Chrome, before its name": refused, "hosts: a new Chrome's name": outside, "hosts: a new Chrome": "hello",
		"other hosts: outside": refused, "other hosts: a.example": "no such host", "other hosts: its address": "hello",
		"denied hosts: outside": "hello", "denied hosts: a.example": "no such host", "denied hosts: c.example": outside,
		"no hosts: name server": "answer", "no hosts: name server, connection": "hello", "hosts, offline: name server": "not permitted",
	}
	for _, server := range nameServers {
		for _, network := range []string{"udp", "tcp"} {
			want["hosts: a.example "+network+" "+server] = outside
			want["hosts: b.example "+network+" "+server] = "no such host"
			want["hosts: inside.example "+network+" "+server] = "no such host"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// networkHelper is the daemon of TestNetwork.
func networkHelper(root string) (finding, error) {
	pasta, err := netns.FindPasta()
	if err != nil {
		return nil, err
	}
	site, own := hello("0.0.0.0:0"), hello("0.0.0.0:0")
	six := hello("[::1]:0")
	policy := egress.Policy{OwnPorts: []uint16{own.Port()},
		Networks: []netip.Prefix{netip.MustParsePrefix(outside + "/32"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}}
	const server = "127.0.0.53:53"
	hello(server)
	answering(server)
	networks := netns.New(pasta, firewall.Rules{Policy: policy, Resolvers: []netip.Addr{netip.MustParseAddr("127.0.0.53")}})
	ctx := context.Background()
	if err := CheckNetworks(ctx, networks); err != nil {
		return nil, err
	}
	x, err := startProbe(ctx, root, networks)
	if err != nil {
		return nil, err
	}
	port := func(host string, at netip.AddrPort) string { return net.JoinHostPort(host, fmt.Sprint(at.Port())) }
	nothing := hello("127.0.0.1:0")
	nothingAt := nothing.String()
	closers[nothing]()
	flush := filepath.Join(root, "program") + " " + helperArg + " flush " + root
	x.try("flush", "run "+flush)
	x.try("flush in a nested user namespace", "run unshare --user --map-root-user "+flush)
	x.try("capabilities", "capabilities")
	x.try("outside", "dial "+port(outside, site))
	x.try("loopback", "dial "+port("127.0.0.1", site))
	x.try("loopback, IPv6", "dial "+six.String())
	x.try("nothing there", "dial "+nothingAt)
	x.try("other loopback", "dial "+port("127.0.0.2", site))
	x.try("metadata", "dial 169.254.169.254:80")
	x.try("private", "dial 10.0.0.1:80")
	x.try("the daemon's port, loopback", "dial "+port("127.0.0.1", own))
	x.try("the daemon's port, outside", "dial "+port(outside, own))
	x.try("the daemon's port, at no interface", "dial "+port("5.6.7.8", own))
	x.try("name server, datagram", "ask "+server)
	x.try("name server, connection", "dial "+server)
	x.try("another name server", "ask 127.0.0.54:53")
	x.try("datagram outside", "ask "+answering(outside+":0"))

	x.limit(egress.Limits{Lists: []egress.List{{Deny: []netip.Prefix{netip.MustParsePrefix(outside + "/32"), netip.MustParsePrefix("127.0.0.0/8")}}}}, nil)
	x.try("outside, denied", "dial "+port(outside, site))
	x.try("loopback, denied", "dial "+port("127.0.0.1", site))
	x.limit(egress.Limits{}, nil)
	x.try("loopback, allowed again", "dial "+port("127.0.0.1", site))
	x.limit(egress.Limits{Proxy: &egress.Proxy{At: netip.MustParseAddrPort("127.0.0.1:4321"), Only: true}}, func(conn net.Conn) {
		_, _ = conn.Write([]byte("proxied"))
		_ = conn.Close()
	})
	x.try("proxy", "dial 127.0.0.1:4321")
	x.try("outside, with a proxy", "dial "+port(outside, site))
	x.try("loopback, with a proxy", "dial "+port("127.0.0.1", site))
	x.limit(egress.Limits{}, nil)
	x.tryHosts(ctx, port("127.0.0.1", site), port(outside, site))
	x.try("ip link delete out", "run ip link delete out")
	count, err := networks.Refused()
	x.found["the rules are still there"] = fmt.Sprint(err)
	x.found["the network"] = fmt.Sprint(count, " refused packets")
	if count > 0 {
		x.found["the network"] = "one refused packet or more"
	}
	return x.found, errors.Join(x.err, x.p.Kill(ctx))
}

// nameServers are those that the program asks: one of the machine, and others.
var nameServers = []string{"127.0.0.53:53", "192.0.2.53:53", "169.254.169.254:53", "[::1]:53", "[2001:db8:53::53]:53"}

// tryHosts limits the program to hosts. Its name server knows some at an address outside.
func (x *probe) tryHosts(ctx context.Context, inside, at string) {
	var mu sync.Mutex
	asked, refused := map[string]bool{}, map[string]bool{}
	defer x.network.Watch(func(r egress.Refusal) {
		mu.Lock()
		defer mu.Unlock()
		if r.Host != "" {
			text := r.Protocol + " " + r.Host
			if r.To.IsValid() {
				text += " " + r.To.Addr().String()
			}
			refused[text] = true
		}
	})()
	limit := func(l egress.Limits) func() {
		r := resolver.New(resolver.Config{Limits: l, Now: time.Now, Admit: x.network.Admit, Refuse: x.network.Report,
			Policy: egress.Policy{Networks: []netip.Prefix{netip.MustParsePrefix(outside + "/32")}},
			Lookup: func(_ context.Context, network, name string) ([]netip.Addr, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[name] = true
				at := map[string]string{"a.example": outside, "c.example": outside, "inside.example": "127.0.0.2"}[name]
				if network != "ip4" || at == "" {
					return nil, nil
				}
				return []netip.Addr{netip.MustParseAddr(at)}, nil
			}})
		port, stop, err := x.network.Resolve(r)
		l.Resolver = port
		x.err = errors.Join(x.err, err)
		x.limit(l, nil)
		return func() { stop(); r.Close() }
	}
	allow := egress.Limits{Lists: []egress.List{{AllowHosts: []string{"a.example", "inside.example"}}}}
	x.try("hosts: a query before them", "ask-from 127.0.0.1:4053 127.0.0.53:53")
	stop := limit(allow)
	x.try("hosts: a query from the same port", "ask-from 127.0.0.1:4053 127.0.0.53:53")
	x.try("hosts: outside, before its name", "dial "+at)
	for _, server := range nameServers {
		for _, network := range []string{"udp", "tcp"} {
			for _, name := range []string{"a.example", "b.example", "inside.example"} {
				x.try("hosts: "+name+" "+network+" "+server, "lookup "+network+" "+server+" "+name)
			}
		}
	}
	x.try("hosts: outside", "dial "+at)
	x.try("hosts: loopback", "dial "+inside)
	allow.Resolver = firewall.NamespaceResolver
	x.limit(allow, nil) // the same
	x.try("hosts: again", "dial "+at)
	x.restart(ctx)
	x.try("hosts: a new Chrome, before its name", "dial "+at)
	x.try("hosts: a new Chrome's name", "lookup udp 127.0.0.53:53 a.example")
	x.try("hosts: a new Chrome", "dial "+at)
	mu.Lock()
	x.found["hosts: asked for"], x.found["hosts: refused"] = joined(asked), joined(refused)
	mu.Unlock()
	stop()
	stop = limit(egress.Limits{Lists: []egress.List{{AllowHosts: []string{"c.example"}}}})
	x.try("other hosts: outside", "dial "+at)
	x.try("other hosts: a.example", "lookup udp 127.0.0.53:53 a.example")
	x.try("", "lookup udp 127.0.0.53:53 c.example")
	x.try("other hosts: its address", "dial "+at)
	stop()
	stop = limit(egress.Limits{Lists: []egress.List{{DenyHosts: []string{"a.example"}}}})
	x.try("denied hosts: outside", "dial "+at)
	x.try("denied hosts: a.example", "lookup udp 127.0.0.53:53 a.example")
	x.try("denied hosts: c.example", "lookup udp 127.0.0.53:53 c.example")
	own := fmt.Sprint(":", firewall.NamespaceResolver)
	x.try("denied hosts: the resolver's own port", "ask 127.0.0.1"+own)
	x.try("denied hosts: the resolver's own port, IPv6", "ask [::1]"+own)
	x.try("denied hosts: the resolver's own port, connection", "dial 127.0.0.1"+own) // nothing listens at the machine's
	x.limit(egress.Limits{Lists: allow.Lists, Proxy: &egress.Proxy{At: netip.MustParseAddrPort("127.0.0.1:4321"), Only: true}}, nil)
	x.try("hosts, offline: name server", "ask 127.0.0.53:53")
	stop()
	x.limit(egress.Limits{}, nil)
	x.try("no hosts: name server", "ask 127.0.0.53:53")
	x.try("no hosts: name server, connection", "dial 127.0.0.53:53")
	delete(x.found, "")
}

func joined(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}

// closers end the servers of hello, which else end with the helper.
var closers = map[netip.AddrPort]func(){}

// hello starts a server that says hello.
func hello(at string) netip.AddrPort {
	l, err := net.Listen("tcp", at)
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("hello"))
			_ = conn.Close()
		}
	}()
	where := l.Addr().(*net.TCPAddr).AddrPort()
	closers[where] = func() { _ = l.Close() }
	return where
}

// answering starts a server that answers datagrams, and returns its address.
func answering(at string) string {
	conn, err := net.ListenPacket("udp", at)
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			_, from, err := conn.ReadFrom(make([]byte, 64))
			if err != nil {
				return
			}
			_, _ = conn.WriteTo([]byte("answer"), from)
		}
	}()
	return conn.LocalAddr().String()
}

// probe is a program that runs instead of Chrome, with its pipe.
type probe struct {
	p       *Process
	answers *bufio.Reader
	network *netns.Network
	again   func(context.Context) (*Process, error) // starts it in the same run directory
	found   finding
	err     error
}

// startProbe starts this binary instead of Chrome.
func startProbe(ctx context.Context, root string, networks *netns.Networks) (*probe, error) {
	own, err := os.ReadFile("/proc/self/exe")
	program, script := filepath.Join(root, "program"), filepath.Join(root, "chrome")
	if err == nil {
		err = os.WriteFile(program, own, 0o755)
	}
	if err == nil {
		err = os.WriteFile(script, []byte("#!/bin/sh\nexec "+program+" "+helperArg+" probe "+root+" \"$@\"\n"), 0o755)
	}
	if err != nil {
		return nil, err
	}
	l, err := New(Config{Binary: script, Root: filepath.Join(root, "run"), NoLandlock: true, Networks: networks})
	if err != nil {
		return nil, err
	}
	dir, err := l.NewDir("x")
	if err != nil {
		return nil, err
	}
	start := func(ctx context.Context) (*Process, error) {
		return l.Start(ctx, Options{Dir: dir, URL: "about:blank"})
	}
	p, err := start(ctx)
	if err != nil {
		return nil, err
	}
	return &probe{p: p, answers: bufio.NewReader(p.Pipe()), network: dir.Network(), again: start, found: finding{}}, nil
}

// restart starts another one in its place.
func (x *probe) restart(ctx context.Context) {
	err := x.p.Kill(ctx)
	if err == nil {
		if x.p, err = x.again(ctx); err == nil {
			x.answers = bufio.NewReader(x.p.Pipe())
		}
	}
	x.err = errors.Join(x.err, err)
}

// try has the program do something and keeps its answer.
func (x *probe) try(name, order string) {
	_, err := io.WriteString(x.p.Pipe(), order+"\n")
	var line string
	if err == nil {
		line, err = x.answers.ReadString('\n')
	}
	x.found[name], x.err = strings.TrimSpace(line), errors.Join(x.err, err)
}

func (x *probe) limit(l egress.Limits, proxy func(net.Conn)) {
	x.err = errors.Join(x.err, x.network.Limit(l, proxy))
}

// probeHelper is the program instead of Chrome. It answers orders until its pipe ends.
func probeHelper() error {
	orders := bufio.NewScanner(os.NewFile(fdRequests, "orders"))
	answers := os.NewFile(fdAnswers, "answers")
	for orders.Scan() {
		words := strings.Fields(orders.Text())
		answer := ""
		switch words[0] {
		case "capabilities":
			answer = strings.Join(statusFields(os.Getpid(), "CapPrm"), " ")
		case "run":
			answer = "works"
			if exec.Command(words[1], words[2:]...).Run() != nil {
				answer = "fails"
			}
		case "dial":
			answer = said("tcp", "", words[1], "")
		case "ask":
			answer = said("udp", "", words[1], "question")
		case "ask-from":
			answer = said("udp", words[1], words[2], "question")
		case "lookup":
			answer = lookup(words[1], words[2], words[3])
		}
		if _, err := io.WriteString(answers, answer+"\n"); err != nil {
			return err
		}
	}
	return orders.Err()
}

// flush removes all rules of the namespace that it runs in.
func flush() error {
	kernel, err := nftables.New()
	if err != nil {
		return err
	}
	kernel.FlushRuleset()
	return kernel.Flush()
}

// said returns what a server says to a question, sent from a local address if one is given, or
// why the server cannot be reached.
func said(network, from, at, question string) string {
	d := net.Dialer{Timeout: 5 * time.Second}
	if from != "" {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from))
	}
	conn, err := d.Dial(network, at)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		if question != "" {
			_, err = io.WriteString(conn, question)
		}
		answer := make([]byte, 64)
		n := 0
		if err == nil {
			n, err = conn.Read(answer)
		}
		if err == nil {
			return string(answer[:n])
		}
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EPERM): // a datagram
		return "not permitted"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	}
	return err.Error()
}

// lookup asks a name server for a name.
func lookup(network, server, name string) string {
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server)
	}}
	found, err := r.LookupHost(context.Background(), name+".")
	var failed *net.DNSError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return strings.Join(found, " ")
}

// Nothing of a namespace outlives its Chrome: not when Chrome ends, when pasta is killed, when
// the warden is killed, or when the daemon is.
func TestNetworkEnds(t *testing.T) {
	for _, victim := range []string{"chrome", "pasta", "warden", "daemon"} {
		t.Run(victim, func(t *testing.T) {
			root := shortTemp(t)
			cmd := inNetwork(t, "network-lives", root)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // the error says that it was killed
			})
			var pids map[string]int
			if err := json.NewDecoder(out).Decode(&pids); err != nil {
				t.Fatal(err)
			}
			pids["daemon"] = cmd.Process.Pid
			own, err := os.Readlink(procPath(pids["chrome"], "ns/net"))
			if err != nil || !bytes.Contains(commandLine(pids["pasta"]), []byte("pasta")) {
				t.Fatalf("%v, %q", err, commandLine(pids["pasta"]))
			}
			// The kernel gives the number of a namespace that has ended to another Chrome's.
			related := slices.DeleteFunc(processes(), func(p proc) bool {
				at, err := os.Readlink(procPath(p.pid, "ns/net"))
				named := p.pid == pids["chrome"] || p.pid == pids["pasta"] || p.pid == pids["warden"]
				return !named && (err != nil || at != own)
			})
			if err := syscall.Kill(pids[victim], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			await(t, "all processes have ended", func() bool {
				return !slices.ContainsFunc(related, func(p proc) bool { return !p.hasEnded() })
			})
		})
	}
}

// networkLives starts a program instead of Chrome and tells the PIDs.
func networkLives(root string) error {
	pasta, err := netns.FindPasta()
	if err != nil {
		return err
	}
	x, err := startProbe(context.Background(), root, netns.New(pasta, firewall.Rules{}))
	if err != nil {
		return err
	}
	pids := map[string]int{"chrome": x.p.PID(), "warden": x.p.warden.Process.Pid}
	for _, pid := range x.p.Processes() {
		// pasta has children with the same command line for a moment.
		ofWarden := slices.Equal(statusFields(pid, "PPid"), []string{fmt.Sprint(pids["warden"])})
		if ofWarden && bytes.Contains(commandLine(pid), []byte("--config-net")) {
			pids["pasta"] = pid
		}
	}
	return json.NewEncoder(os.Stdout).Encode(pids)
}

// The reason names the one thing that pasta lacks. A Chrome whose pasta does not start does not
// start either.
func TestNetworkMissing(t *testing.T) {
	for _, tt := range []struct{ name, has, not, reason string }{
		{"rights on the device", "mknod -m 666", "mknod -m 600", "pasta ended: this user may not open /dev/net/tun; allow it"},
		{"a default route", "ip route add default via", "true", "pasta ended: this machine has no network interface with a default route; connect it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := inNetwork(t, "network-missing", shortTemp(t))
			cmd.Args[6] = strings.ReplaceAll(cmd.Args[6], tt.has, tt.not)
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), tt.reason) || !strings.Contains(string(out), "browser_failed: Chrome cannot have its own network: pasta cannot be started") {
				t.Errorf("%s, %v", out, err)
			}
		})
	}
}

// When pasta starts, its interface will get no address by itself. The script in its place is
// faster than the stage, so it would see the old state if nothing made it wait.
func TestNetworkQuiet(t *testing.T) {
	root := shortTemp(t)
	if out, err := inNetwork(t, "network-quiet", root).Output(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	got, err := os.ReadFile(filepath.Join(root, "quiet"))
	if err != nil || string(got) != "1\n0\n" {
		t.Errorf("addr_gen_mode and accept_dad are %q, %v", got, err)
	}
}

// networkQuiet starts a program instead of Chrome, whose pasta first writes down how interfaces
// get addresses in the namespace.
func networkQuiet(root string) error {
	pasta := filepath.Join(root, "pasta")
	script := `#!/bin/sh
for pid; do :; done
of=/proc/sys/net/ipv6/conf/default
nsenter --preserve-credentials --user --net --target "$pid" cat $of/addr_gen_mode $of/accept_dad > ` + root + `/quiet
exec /usr/bin/pasta "$@"
`
	if err := os.WriteFile(pasta, []byte(script), 0o755); err != nil {
		return err
	}
	ctx := context.Background()
	x, err := startProbe(ctx, root, netns.New(pasta, firewall.Rules{}))
	if err != nil {
		return err
	}
	return x.p.Kill(ctx)
}

// networkMissing prints why there are no networks, and why a Chrome does not start.
func networkMissing(root string) error {
	ctx := context.Background()
	missing := CheckNetworks(ctx, netns.New("/usr/bin/pasta", firewall.Rules{}))
	_, failed := startProbe(ctx, root, netns.New("/nowhere/pasta", firewall.Rules{})) // removed since
	_, err := fmt.Printf("%v\n%v\n", missing, failed)
	return err
}
