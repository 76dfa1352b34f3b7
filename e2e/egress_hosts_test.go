package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/nftables"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
)

const (
	noName  = "net::ERR_NAME_NOT_RESOLVED"
	refused = "net::ERR_CONNECTION_REFUSED"
)

// hostsRig is a daemon with a name server, and sites at three addresses. Sessions may reach
// only 127.77.0.0/16 of loopback.
type hostsRig struct {
	t               *testing.T
	d               *daemon.Daemon
	names           *nameServer
	site, elsewhere *victim // at 127.77.0.1 and 127.77.0.2
	private         *victim // at 127.0.0.1
	engine          string
	base            int // the first uid of its Chromes, if root runs it
}

func newHostsRig(t *testing.T, engine string, as runAs) *hostsRig {
	x := &hostsRig{t: t, engine: engine, base: daemon.UIDBase(), site: newVictimAt(t, "127.77.0.1"), elsewhere: newVictimAt(t, "127.77.0.2"), private: newVictimAt(t, "127.0.0.1")}
	x.names = newNameServer(t, map[string][]string{
		"site.example": {"127.77.0.1"}, "sub.site.example": {"127.77.0.1"}, "a.b.site.example": {"127.77.0.1"}, "other.example": {"127.77.0.1"},
		"inside.site.example": {"127.0.0.1"}, "rebinds.site.example": {"127.77.0.1"}, "mixed.site.example": {"127.0.0.1", "169.254.169.254", "127.77.0.1"},
	})
	x.d = daemon.Start(t, as(t, daemon.Options{Args: []string{"--egress", "required", "--allow-private", "127.77.0.0/16", "--resolver", x.names.at}, Standby: 1, ShellSpare: true, UIDBase: x.base}))
	return x
}

func (x *hostsRig) begin(egress obj, more obj) liveSession {
	x.t.Helper()
	body := obj{"engine": x.engine, "user_id": "user", "egress": egress}
	for name, value := range more {
		body[name] = value
	}
	return begin(x.t, x.d, body)
}

// expect checks with which error a page of a session fails; "" for none.
func (x *hostsRig) expect(s liveSession, to *victim, host, want string) {
	x.t.Helper()
	w := dial(x.t, s.CDP)
	defer w.close()
	page, _ := w.page()
	var got struct{ ErrorText string }
	w.call(page, "Page.navigate", obj{"url": to.url(host, "page")}, &got)
	if got.ErrorText != want {
		x.t.Errorf("%s: %s fails with %q, want %q", x.engine, host, got.ErrorText, want)
	}
}

// awaitRefused waits for the event of a refusal.
func (x *hostsRig) awaitRefused(s liveSession, want string) {
	x.t.Helper()
	daemon.Eventually(x.t, grace, "an event says that this was refused: "+want, func() bool {
		for _, e := range historyOf(x.t, x.d, s.ID)[0].events {
			if e.Type == "egress_refused" && fmt.Sprint(e.Data["protocol"], " ", e.Data["host"], " ", e.Data["address"]) == want {
				return true
			}
		}
		return false
	})
}

// TestAttackEgressHosts limits sessions to hosts, and keeps them from hosts.
func TestAttackEgressHosts(t *testing.T) {
	t.Parallel()
	attackEgressHosts(t, byRoot)
}

// TestAttackEgressHostsOrdinary is TestAttackEgressHosts on the daemon of an ordinary user.
func TestAttackEgressHostsOrdinary(t *testing.T) {
	t.Parallel()
	attackEgressHosts(t, byOrdinaryUserWithTun)
}

func attackEgressHosts(t *testing.T, as runAs) {
	for _, engine := range []string{"chrome", "shell"} {
		t.Run(engine, func(t *testing.T) {
			x := newHostsRig(t, engine, as)
			allow := obj{"allow": []string{"Site.Example.", "*.site.example"}}
			s := x.begin(allow, nil)
			x.expect(s, x.site, "site.example", "")
			x.expect(s, x.site, "sub.site.example", "")
			x.expect(s, x.site, "a.b.site.example", "")
			x.expect(s, x.site, "other.example", noName)
			x.awaitRefused(s, "dns other.example <nil>")
			x.expect(s, x.elsewhere, "127.77.0.2", refused)
			x.expect(s, x.private, "localhost", refused)
			x.expect(s, x.private, "inside.site.example", noName)
			x.awaitRefused(s, "dns inside.site.example 127.0.0.1")
			x.expect(s, x.site, "mixed.site.example", "")
			x.expect(s, x.site, "rebinds.site.example", "")
			x.names.set("rebinds.site.example", "127.0.0.1")
			x.tunnel(s)
			x.expectNotAsked("other.example")
			if x.private.connections() > 0 || x.elsewhere.connections() > 0 {
				t.Error("a connection reached a site that is not allowed")
			}

			// A parked Chrome knows names that its next session may not look up.
			finish(t, x.d, s.ID, "save_snapshot_mode=memory&save_as_default=true")
			again := obj{"restore_default_environment_from_user_id": "user"}
			s = x.begin(allow, again)
			if s.Restored == nil || s.Restored.Path != restore.PathParked {
				t.Errorf("restored as %+v", s.Restored)
			}
			x.expect(s, x.site, "sub.site.example", "")
			x.expect(s, x.site, "other.example", noName)
			x.expect(s, x.elsewhere, "127.77.0.2", refused)
			parked := finish(t, x.d, s.ID, toMemory+andDefault).Snapshot.ID
			s = x.begin(obj{"allow": []string{"other.example", "rebinds.site.example", "127.77.0.2"}}, again)
			if s.Restored == nil || s.Restored.Path == restore.PathParked {
				t.Errorf("restored as %+v, although the hosts differ", s.Restored)
			}
			x.expect(s, x.site, "site.example", noName)
			x.expect(s, x.site, "other.example", "")
			x.expect(s, x.private, "rebinds.site.example", noName)
			x.awaitRefused(s, "dns rebinds.site.example 127.0.0.1")
			x.expect(s, x.elsewhere, "127.77.0.2", "")
			finish(t, x.d, s.ID, toFiles)
			x.d.Must(t, http.StatusOK, http.MethodPost, at(s.ID, "/resume"), nil)
			s = look(t, x.d, s.ID)
			x.expect(s, x.site, "site.example", noName)
			x.expect(s, x.site, "other.example", "")
			finish(t, x.d, s.ID, throwAway)

			s = x.begin(obj{"deny": []string{"*.site.example", "localhost"}}, nil)
			x.expect(s, x.site, "site.example", "")
			x.expect(s, x.site, "other.example", "")
			x.expect(s, x.elsewhere, "127.77.0.2", "")
			x.expect(s, x.site, "sub.site.example", noName)
			x.expect(s, x.private, "localhost", refused)
			finish(t, x.d, s.ID, throwAway)

			x.beside()
			x.users()
			x.standby(again)
			x.proxied()
			x.d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/users/user/default", nil)
			x.d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/snapshots/"+parked, nil)
			x.expectNothingLeft()
		})
	}
}

// tunnel sends data in names, and datagrams to addresses that no name has.
func (x *hostsRig) tunnel(s liveSession) {
	x.t.Helper()
	w := dial(x.t, s.CDP)
	defer w.close()
	page, _ := w.page()
	w.open(page, x.site.url("127.77.0.1", "page")) // WebTransport needs an address that Chrome trusts
	w.eval(page, fmt.Sprintf(`(async () => {
		const link = document.createElement("link");
		link.rel = "dns-prefetch", link.href = "http://prefetched.other.example/";
		document.head.append(link);
		for (let i = 0; i < 10; i++) await fetch("http://data-" + i + ".other.example/").catch(() => 0);
		const c = window.connection = new RTCPeerConnection({iceServers: [{urls: "stun:127.77.0.2:%d"}, {urls: "stun:stun.other.example"}]});
		c.createDataChannel("x");
		await c.setLocalDescription(await c.createOffer());
		await new WebTransport("https://127.77.0.2:%d/").ready.catch(() => 0);
		return "done" })()`, x.elsewhere.stun.port, x.elsewhere.quic.port))
	refusals := []string{"dns data-9.other.example <nil>", "dns stun.other.example <nil>",
		fmt.Sprintf("udp <nil> 127.77.0.2:%d", x.elsewhere.stun.port), fmt.Sprintf("udp <nil> 127.77.0.2:%d", x.elsewhere.quic.port)}
	if x.engine == "chrome" { // the shell looks up no names ahead
		refusals = append(refusals, "dns prefetched.other.example <nil>")
	}
	for _, want := range refusals {
		x.awaitRefused(s, want)
	}
	if x.elsewhere.stun.reached() || x.elsewhere.quic.reached() {
		x.t.Error("a datagram reached an address that is not allowed")
	}
}

func (x *hostsRig) expectNotAsked(name string) {
	x.t.Helper()
	if asked := x.names.below(name); len(asked) > 0 {
		x.t.Errorf("the name server was asked for %s", asked)
	}
}

// beside checks that each of two sessions has its own hosts, also when the other one has ended.
func (x *hostsRig) beside() {
	x.t.Helper()
	one, other := x.begin(obj{"allow": []string{"site.example"}}, nil), x.begin(obj{"allow": []string{"other.example", "sub.site.example"}}, nil)
	x.expect(one, x.site, "site.example", "")
	x.expect(one, x.site, "other.example", noName)
	x.expect(other, x.site, "site.example", noName)
	x.awaitRefused(other, "dns site.example <nil>")
	x.expect(other, x.site, "other.example", "")
	finish(x.t, x.d, one.ID, throwAway)
	x.expect(other, x.site, "sub.site.example", "")
	finish(x.t, x.d, other.ID, throwAway)
}

// users checks that a user's hosts and those of a create must both allow a name.
func (x *hostsRig) users() {
	x.t.Helper()
	settings := func(egress any) {
		x.t.Helper()
		got := string(x.d.Must(x.t, http.StatusOK, http.MethodPatch, "/v1/users/user", obj{"egress": egress}).Body)
		if egress != nil && !strings.Contains(got, `"allow":["*.site.example","127.77.0.2/32"],"deny":["a.b.site.example"]`) {
			x.t.Errorf("the settings are %s", got)
		}
	}
	settings(obj{"allow": []string{"*.SITE.example", "127.77.0.2"}, "deny": []string{"a.b.site.example"}})
	s := x.begin(obj{}, nil)
	x.expect(s, x.site, "site.example", noName)
	x.expect(s, x.site, "sub.site.example", "")
	x.expect(s, x.site, "a.b.site.example", noName)
	x.expect(s, x.elsewhere, "127.77.0.2", "")
	finish(x.t, x.d, s.ID, throwAway)
	s = x.begin(obj{"allow": []string{"site.example", "mixed.site.example"}}, nil)
	x.expect(s, x.site, "site.example", noName)
	x.expect(s, x.site, "sub.site.example", noName)
	x.expect(s, x.site, "mixed.site.example", "")
	x.expect(s, x.elsewhere, "127.77.0.2", refused)
	finish(x.t, x.d, s.ID, throwAway)
	settings(nil)
}

// standby checks a Chrome that was ready before its session had hosts.
func (x *hostsRig) standby(again obj) {
	x.t.Helper()
	ready := strings.Count(x.d.Log(), "a standby Chrome is ready")
	x.d.Must(x.t, http.StatusOK, http.MethodPatch, "/v1/users/user", obj{"standby": 1})
	daemon.Eventually(x.t, backgroundDeadline, "a standby Chrome is ready", func() bool { return strings.Count(x.d.Log(), "a standby Chrome is ready") > ready })
	s := x.begin(obj{"allow": []string{"site.example"}}, again)
	if r := s.Restored; r == nil || r.Path != restore.PathStandby && r.Path != restore.PathWarm {
		x.t.Errorf("restored as %+v", r)
	}
	x.expect(s, x.site, "site.example", "")
	x.expect(s, x.site, "other.example", noName)
	finish(x.t, x.d, s.ID, throwAway)
	x.d.Must(x.t, http.StatusOK, http.MethodPatch, "/v1/users/user", obj{"standby": 0})
}

// proxied checks which hosts a session's proxy is asked for.
func (x *hostsRig) proxied() {
	x.t.Helper()
	proxy := newVictimAt(x.t, "127.77.0.1")
	s := x.begin(obj{"allow": []string{"site.example", "127.77.0.1"}}, obj{"proxy": obj{"server": strings.TrimSuffix(proxy.url("127.77.0.1", ""), "/"), "bypass": "<-loopback>"}})
	w := dial(x.t, s.CDP)
	defer w.close()
	page, _ := w.page()
	for _, test := range []struct {
		host    string
		reaches bool
	}{{"site.example", true}, {"127.77.0.1", true}, {"other.example", false}, {"127.77.0.2", false}} {
		path := "of-" + test.host
		w.try(page, "Page.navigate", obj{"url": x.elsewhere.url(test.host, path)})
		if proxy.reached(path) != test.reaches {
			x.t.Errorf("%s: the proxy was asked for %s: %v", x.engine, test.host, !test.reaches)
		}
	}
	x.awaitRefused(s, "tcp other.example <nil>")
	finish(x.t, x.d, s.ID, throwAway)
}

// expectNothingLeft checks that no session's rules and no resolver are left.
func (x *hostsRig) expectNothingLeft() {
	x.t.Helper()
	kernel, err := nftables.New()
	if err != nil {
		x.t.Fatal(err)
	}
	daemon.Eventually(x.t, grace, "the rules of the sessions are gone", func() bool {
		chains, err := kernel.ListChainsOfTableFamily(nftables.TableFamilyINet)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, c := range chains {
			if c.Table.Name == fmt.Sprint("stasis-", x.base) && (strings.HasPrefix(c.Name, "proxied-") || strings.HasPrefix(c.Name, "listed-")) {
				return false
			}
		}
		return true
	})
	// A spare may be looking up a name.
	daemon.Eventually(x.t, grace, "no socket for datagrams is left", func() bool { return len(datagramSockets(x.t, x.d.PID())) == 0 })
}

// datagramSockets returns the UDP sockets that a process has open.
func datagramSockets(t *testing.T, pid int) (all []string) {
	t.Helper()
	known := map[string]string{}
	for _, table := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		raw, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if fields := strings.Fields(line); len(fields) > 9 {
				known["socket:["+fields[9]+"]"] = fields[1]
			}
		}
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && known[to] != "" {
			all = append(all, known[to])
		}
	}
	return all
}
