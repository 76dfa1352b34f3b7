package browser

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/browser/resolver"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/state"
)

// recordedFirewall records the limits.
type recordedFirewall struct{ limits []egress.Limits }

func (f *recordedFirewall) Limit(_ int, l egress.Limits) error {
	f.limits = append(f.limits, l)
	return nil
}
func (f *recordedFirewall) Watch(int, func(egress.Refusal)) func()      { return func() {} }
func (f *recordedFirewall) Admit(int, []netip.Addr, []netip.Addr) error { return nil }
func (f *recordedFirewall) Report(int, egress.Refusal)                  {}

func hostsStarter(t *testing.T) (*Starter, *recordedFirewall) {
	f := &recordedFirewall{}
	none := t.TempDir()
	return &Starter{Policy: egress.Policy{Private: true}, Firewall: f, Hosts: &Hosts{CanRedirect: func() error { return nil }, Now: time.Now, Files: resolver.Files{Hosts: none + "/hosts", Nsswitch: none + "/nsswitch.conf"}}}, f
}

// The same lists in another order are the same limits for the firewall, which keeps the
// addresses of hosts only then.
func TestHostsInAnotherOrder(t *testing.T) {
	s, f := hostsStarter(t)
	dir := &Dir{UID: os.Geteuid()}
	lists := []egress.List{{AllowHosts: []string{"a.example", "b.example"}}, {DenyHosts: []string{"c.example"}}}
	t.Cleanup(func() { s.unlimitEgress(dir) })
	for range 2 {
		if err := s.limitEgress(dir, Options{Egress: Egress{Lists: slices.Clone(lists)}}, nil); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(lists)
	}
	if first, second := fmt.Sprint(f.limits[0]), fmt.Sprint(f.limits[1]); first != second || f.limits[0].Resolver == 0 {
		t.Errorf("first %s, then %s", first, second)
	}
}

// A Chrome that gets a session without hosts asks its proxy for any.
func TestProxyAfterHosts(t *testing.T) {
	s, _ := hostsStarter(t)
	dir := &Dir{UID: os.Geteuid()}
	r, err := relay.Start(&url.URL{Scheme: "http", Host: "127.0.0.1:1"}, os.Geteuid()) // no proxy answers there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.SetProcesses(func() []int { return []int{os.Getpid()} })
	o := Options{Overrides: state.Overrides{Proxy: &state.Proxy{Server: "http://127.0.0.1:1"}}}
	for _, test := range []struct {
		lists []egress.List
		want  int
	}{
		{[]egress.List{{DenyHosts: []string{"a.example"}}}, http.StatusForbidden},
		{nil, http.StatusBadGateway},
	} {
		o.Egress.Lists = test.lists
		if err := s.limitEgress(dir, o, r); err != nil {
			t.Fatal(err)
		}
		if got := connect(t, r.Address(), "a.example:443"); got != test.want {
			t.Errorf("with %v: %d, want %d", test.lists, got, test.want)
		}
	}
}

// connect asks a proxy for a tunnel and returns the status.
func connect(t *testing.T, proxy, to string) int {
	t.Helper()
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
