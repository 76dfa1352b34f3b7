package resolver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Resolver with a name server and a kernel that record.
type rig struct {
	t *testing.T
	r *Resolver
	s *Server

	mu       sync.Mutex
	names    map[string][]string
	asked    []string
	admitted []string // added
	forgot   []string
	fails    error // of admitting
	refused  []egress.Refusal
	now      time.Time
}

func newRig(t *testing.T, l egress.Limits, names map[string][]string) *rig {
	t.Helper()
	g := &rig{t: t, names: names, now: time.Now()}
	g.r = New(Config{Limits: l, Policy: egress.Policy{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, Now: func() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.now },
		Lookup: func(_ context.Context, network, name string) (found []netip.Addr, err error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.asked = append(g.asked, network+" "+name)
			for _, text := range g.names[name] {
				if ip := netip.MustParseAddr(text); ip.Is4() == (network == "ip4") {
					found = append(found, ip)
				}
			}
			if all, ok := g.names[name]; ok && len(all) == 0 {
				err = errors.New("no server answers")
			}
			return found, err
		},
		Admit: func(add, forget []netip.Addr) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, ip := range add {
				g.admitted = append(g.admitted, ip.String())
			}
			for _, ip := range forget {
				g.forgot = append(g.forgot, ip.String())
			}
			return g.fails
		},
		Refuse: func(r egress.Refusal) { g.mu.Lock(); defer g.mu.Unlock(); g.refused = append(g.refused, r) }})
	var err error
	if g.s, err = Listen(g.r.Answer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.s.Close)
	t.Cleanup(g.r.Close)
	return g
}

// with changes or reads what the rig has recorded.
func (g *rig) with(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// ask sends a query over a network, and returns the answer's code and addresses.
func (g *rig) ask(network, name string, kind dnsmessage.Type) string {
	g.t.Helper()
	query, err := (&dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}).Pack()
	if err != nil {
		g.t.Fatal(err)
	}
	raw := g.send(network, query)
	var m dnsmessage.Message
	if err := m.Unpack(raw); err != nil || m.ID != 7 || !m.Response {
		g.t.Fatalf("%s: a bad answer: %v", name, err)
	}
	text := m.RCode.String()
	if m.Truncated {
		text += " truncated"
	}
	for _, a := range m.Answers {
		if a.Header.TTL != 60 {
			g.t.Errorf("%s: TTL %d", name, a.Header.TTL)
		}
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			text += " " + netip.AddrFrom4(b.A).String()
		case *dnsmessage.AAAAResource:
			text += " " + netip.AddrFrom16(b.AAAA).String()
		}
	}
	return text
}

func (g *rig) send(network string, query []byte) []byte {
	g.t.Helper()
	conn, err := net.Dial(network, fmt.Sprint("127.0.0.1:", g.s.Port()))
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	answer := make([]byte, math.MaxUint16)
	if network == "udp" {
		if _, err = conn.Write(query); err != nil {
			g.t.Fatal(err)
		}
		n, err := conn.Read(answer)
		if err != nil {
			g.t.Fatal(err)
		}
		return answer[:n]
	}
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		g.t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, answer[:2]); err != nil {
		g.t.Fatal(err)
	}
	answer = answer[:binary.BigEndian.Uint16(answer)]
	if _, err := io.ReadFull(conn, answer); err != nil {
		g.t.Fatal(err)
	}
	return answer
}

func (g *rig) expect(network, name string, kind dnsmessage.Type, want string) {
	g.t.Helper()
	if got := g.ask(network, name, kind); got != want {
		g.t.Errorf("%s %s %s: got %s, want %s", network, name, kind, got, want)
	}
}

const (
	typeHTTPS = dnsmessage.Type(65)
	none      = "RCodeSuccess"
	unknown   = "RCodeNameError"
)

var onlyExample = egress.Limits{Lists: []egress.List{{AllowHosts: []string{"a.example", "*.a.example"}}}}

// A name that is not allowed does not exist, and no name server hears of it.
func TestRefusedNames(t *testing.T) {
	g := newRig(t, onlyExample, map[string][]string{"a.example": {"8.8.8.8", "2001:4860::1"}, "b.example": {"8.8.4.4"}})
	for _, network := range []string{"udp", "tcp"} {
		g.expect(network, "A.Example.", dnsmessage.TypeA, none+" 8.8.8.8")
		g.expect(network, "a.example.", dnsmessage.TypeAAAA, none+" 2001:4860::1")
		g.expect(network, "b.example.", dnsmessage.TypeA, unknown)
		g.expect(network, "b.example.", dnsmessage.TypeAAAA, unknown)
		g.expect(network, "secret.b.example.", dnsmessage.TypeTXT, unknown)
		// Records that could lead around the check are not asked for.
		for _, kind := range []dnsmessage.Type{typeHTTPS, 64, dnsmessage.TypeTXT, dnsmessage.TypeCNAME, dnsmessage.TypeMX, dnsmessage.TypeALL} {
			g.expect(network, "a.example.", kind, none)
		}
		g.expect(network, "nothing.a.example.", dnsmessage.TypeA, none)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if want := []string{"ip4 a.example", "ip6 a.example", "ip4 nothing.a.example"}; !reflect.DeepEqual(g.asked, append(slices.Clone(want), want...)) {
		t.Errorf("the name server was asked for %q", g.asked)
	}
	if want := []string{"8.8.8.8", "2001:4860::1"}; !reflect.DeepEqual(g.admitted, want) {
		t.Errorf("admitted %s", g.admitted)
	}
	one := []egress.Refusal{{Protocol: "dns", Host: "b.example"}, {Protocol: "dns", Host: "secret.b.example"}}
	if !reflect.DeepEqual(g.refused, append(slices.Clone(one), one...)) {
		t.Errorf("reported %v", g.refused)
	}
}

// A name that changes its address gains nothing: what is not allowed is neither answered nor
// admitted.
func TestRebinding(t *testing.T) {
	g := newRig(t, onlyExample, map[string][]string{"a.example": {"8.8.8.8"}})
	g.expect("udp", "a.example.", dnsmessage.TypeA, none+" 8.8.8.8")
	g.with(func() {
		g.names["a.example"] = []string{"127.0.0.1", "169.254.169.254", "192.168.0.1", "8.8.4.4", "10.1.2.3", "::1", "::ffff:127.0.0.1", "fe80::1"}
	})
	g.expect("udp", "a.example.", dnsmessage.TypeA, none+" 8.8.4.4 10.1.2.3")
	g.expect("udp", "a.example.", dnsmessage.TypeAAAA, none)
	g.mu.Lock()
	defer g.mu.Unlock()
	if want := []string{"8.8.8.8", "8.8.4.4", "10.1.2.3"}; !reflect.DeepEqual(g.admitted, want) {
		t.Errorf("admitted %s", g.admitted)
	}
	if len(g.refused) != 6 || g.refused[0].Host != "a.example" || g.refused[0].To.Addr().String() != "127.0.0.1" {
		t.Errorf("reported %v", g.refused)
	}
}

// No answer goes out before the kernel allows its addresses.
func TestAdmitted(t *testing.T) {
	g := newRig(t, onlyExample, map[string][]string{"a.example": {"8.8.8.8"}, "fails.a.example": {}})
	g.with(func() { g.fails = errors.New("the kernel is busy") })
	g.expect("udp", "a.example.", dnsmessage.TypeA, "RCodeServerFailure")
	g.with(func() { g.fails = nil })
	g.expect("udp", "a.example.", dnsmessage.TypeA, none+" 8.8.8.8")
	g.expect("udp", "a.example.", dnsmessage.TypeA, none+" 8.8.8.8")
	g.with(func() { g.now = g.now.Add(renewAfter + time.Second) })
	g.expect("udp", "a.example.", dnsmessage.TypeA, none+" 8.8.8.8")
	g.expect("udp", "fails.a.example.", dnsmessage.TypeA, "RCodeServerFailure")
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.admitted) != 3 { // one failed
		t.Errorf("admitted %s", g.admitted)
	}
}

// Close ends what is being looked up and waits for it. After it, nothing is answered or
// admitted: the next limits may be in place.
func TestClose(t *testing.T) { synctest.Test(t, testClose) }

func testClose(t *testing.T) {
	admitted := false
	r := New(Config{Limits: onlyExample, Now: time.Now, Refuse: func(egress.Refusal) {},
		Lookup: func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // in the test's own time
			return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
		},
		Admit: func([]netip.Addr, []netip.Addr) error { admitted = true; return nil }})
	query, err := (&dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	go r.Answer(context.Background(), query, maxDatagram)
	synctest.Wait() // until it is looked up
	began := time.Now()
	r.Close()
	if !admitted || time.Since(began) != time.Second {
		t.Errorf("Close returned after %s, admitted: %v", time.Since(began), admitted)
	}
	if got := r.Answer(t.Context(), query, maxDatagram); got != nil {
		t.Errorf("a query after Close is answered with %v", got)
	}
}

// Addresses that the kernel has lost are admitted again.
func TestReadmit(t *testing.T) {
	g := newRig(t, onlyExample, map[string][]string{"a.example": {"8.8.8.8"}})
	for range 2 {
		g.expect("udp", "a.example.", dnsmessage.TypeA, none+" 8.8.8.8")
		g.expect("tcp", "a.example.", dnsmessage.TypeA, none+" 8.8.8.8")
		g.r.Readmit()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if want := []string{"8.8.8.8", "8.8.8.8"}; !reflect.DeepEqual(g.admitted, want) {
		t.Errorf("admitted %s", g.admitted)
	}
}

// A list that only denies hosts allows other names.
func TestDeniedNames(t *testing.T) {
	g := newRig(t, egress.Limits{Lists: []egress.List{{DenyHosts: []string{"*.b.example"}}}}, map[string][]string{"a.example": {"8.8.8.8"}})
	g.expect("udp", "a.example.", dnsmessage.TypeA, none+" 8.8.8.8")
	g.expect("udp", "x.b.example.", dnsmessage.TypeA, unknown)
	if err := new(Resolver).admit([]netip.Addr{netip.IPv6Loopback()}); err != nil { // without Admit
		t.Error(err)
	}
}

// The addresses of a session are bounded. Those that were not renewed make space.
func TestTooManyAddresses(t *testing.T) {
	g := newRig(t, onlyExample, map[string][]string{})
	at := 0
	next := func(n int) (all []netip.Addr) {
		for range n {
			at++
			all = append(all, netip.AddrFrom4([4]byte{8, 8, byte(at >> 8), byte(at)}))
		}
		return all
	}
	if err := g.r.admit(next(maxAddresses)); err != nil {
		t.Fatal(err)
	}
	if err := g.r.admit(next(1)); !errors.Is(err, errTooMany) {
		t.Errorf("one more: %v", err)
	}
	g.with(func() { g.now = g.now.Add(egress.AdmittedFor + time.Second) })
	if err := g.r.admit(next(1)); err != nil || len(g.forgot) != maxAddresses {
		t.Errorf("%d were forgotten, %v", len(g.forgot), err)
	}
}

// Names that no host can have are refused, and what is reported of them can be printed.
func TestUnprintableNames(t *testing.T) {
	g := newRig(t, onlyExample, map[string][]string{})
	g.expect("udp", "x\x1b[2J\n.a.example.", dnsmessage.TypeA, unknown)
	g.expect("udp", "\xff \u0085.b.example.", dnsmessage.TypeA, unknown)
	long := append([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, bytes.Repeat(append([]byte{49}, bytes.Repeat([]byte("a"), 49)...), 6)...)
	var answer dnsmessage.Message
	if err := answer.Unpack(g.send("udp", append(long, 0, 0, 1, 0, 1))); err != nil || answer.RCode != dnsmessage.RCodeFormatError {
		t.Errorf("a name of 300 bytes: %v, %v", answer.RCode, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	want := []egress.Refusal{{Protocol: "dns", Host: `x\027[2j\010.a.example`}, {Protocol: "dns", Host: `\255\032\194\133.b.example`}}
	if len(g.asked) > 0 || !reflect.DeepEqual(g.refused, want) {
		t.Errorf("the name server was asked for %q, reported %q", g.asked, g.refused)
	}
}

// An answer that is too long for a datagram is asked for again over TCP.
func TestTruncated(t *testing.T) {
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprintf("2001:4860::%x", i+1))
	}
	g := newRig(t, onlyExample, map[string][]string{"a.example": all})
	g.expect("udp", "a.example.", dnsmessage.TypeAAAA, none+" truncated")
	if got := g.ask("tcp", "a.example.", dnsmessage.TypeAAAA); len(got) < 300 {
		t.Errorf("over TCP: %s", got)
	}
}

// What is no query has no effect.
func TestBadQueries(t *testing.T) {
	g := newRig(t, onlyExample, map[string][]string{"a.example": {"8.8.8.8"}})
	two := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}, {Name: dnsmessage.MustNewName("b.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	other := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("b.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassCHAOS}}}
	for want, m := range map[dnsmessage.RCode]dnsmessage.Message{dnsmessage.RCodeFormatError: two, dnsmessage.RCodeNotImplemented: other} {
		query, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var answer dnsmessage.Message
		if err := answer.Unpack(g.send("udp", query)); err != nil || answer.RCode != want {
			t.Errorf("answered %v, %v, want %v", answer.RCode, err, want)
		}
	}
	for _, raw := range [][]byte{nil, {1}, make([]byte, 11), append([]byte{0, 1, 0x80, 0}, make([]byte, 8)...)} {
		if got := g.r.Answer(t.Context(), raw, maxDatagram); got != nil {
			t.Errorf("%v is answered with %v", raw, got)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) > 0 {
		t.Errorf("the name server was asked for %s", g.asked)
	}
}

func TestFiles(t *testing.T) {
	f := Files{Hosts: t.TempDir() + "/hosts", Nsswitch: t.TempDir() + "/nsswitch.conf"}
	f.Nscd = []string{f.Hosts + ".none", f.Nsswitch + ".socket"}
	if err := f.Check(); err != nil {
		t.Errorf("without a file: %v", err)
	}
	nscd, err := net.Listen("unix", f.Nscd[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("with nscd: %v", err)
	}
	nscd.Close()
	for text, ok := range map[string]bool{
		"hosts: files dns # resolve\n": true, "passwd: sss\nhosts:\tfiles [NOTFOUND=return] dns myhostname\n": true,
		"hosts: files resolve [!UNAVAIL=return] dns\n": false, "hosts: mdns4 dns\n": false, "hosts: files mdns4_minimal [NOTFOUND=return] dns\n": false, "hosts: wins": false,
	} {
		if err := os.WriteFile(f.Nsswitch, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.Check(); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(f.Hosts, []byte("# 9.9.9.9 a.example\n10.0.0.1 B.example a.example # x\nfe80::1%eth0 c.example\nnonsense d.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spare := make([]netip.Prefix, 0, 8)
	l := egress.Limits{Lists: []egress.List{{Allow: spare, AllowHosts: []string{"a.example", "*.localhost"}}, {DenyHosts: []string{"*.example"}, AllowHosts: []string{"e.test"}}}}
	got, err := f.With(l)
	want := "[[10.0.0.1/32 127.0.0.1/32 ::1/128] [] | [] [10.0.0.1/32 fe80::1/128]]"
	if text := fmt.Sprintf("[%v %v | %v %v]", got.Lists[0].Allow, got.Lists[0].Deny, got.Lists[1].Allow, got.Lists[1].Deny); err != nil || text != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	if len(l.Lists[0].Allow) > 0 || spare[:1][0].IsValid() {
		t.Error("the caller's lists were changed")
	}
}

func TestServers(t *testing.T) {
	got, err := Servers([]string{"192.0.2.53", "192.0.2.53:5353", "2001:db8::53", "[2001:db8::53]:54"})
	if want := []string{"192.0.2.53:53", "192.0.2.53:5353", "[2001:db8::53]:53", "[2001:db8::53]:54"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %s, %v", got, err)
	}
	for _, text := range []string{"", "dns.example", "192.0.2.53:0", "192.0.2.53:x", "192.0.2.0/24"} {
		if _, err := Servers([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
