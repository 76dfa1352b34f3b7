package e2e

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/nftables"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// allowedNetwork is the only network that is not public and that the sessions of
// TestAttackEgress may connect to. It is a part of loopback.
const allowedNetwork = "127.77.0.0/16"

// TestAttackEgress makes everything in a browser that can send packets connect to a server
// of this machine, and to the daemon. The same attempts reach the server if the daemon does
// not limit addresses. The short form shows this with one engine for each user of a daemon.
func TestAttackEgress(t *testing.T) {
	t.Parallel()
	attackEgress(t, byRoot, browser.EngineChrome)
}

// TestAttackEgressOrdinary is TestAttackEgress on the daemon of an ordinary user.
func TestAttackEgressOrdinary(t *testing.T) {
	t.Parallel()
	attackEgress(t, byOrdinaryUserWithTun, browser.EngineShell)
}

// runAs completes the options of a daemon.
type runAs func(testing.TB, daemon.Options, ...string) daemon.Options

// byRoot leaves the options as they are.
func byRoot(_ testing.TB, o daemon.Options, _ ...string) daemon.Options { return o }

// attackEgress attacks both engines. reached is the engine whose attempts reach the server in
// the short form too, if nothing limits them.
func attackEgress(t *testing.T, as runAs, reached string) {
	for _, engine := range []string{browser.EngineChrome, browser.EngineShell} {
		t.Run(engine, func(t *testing.T) {
			for _, c := range []struct {
				name string
				args []string
			}{
				{"not limited", []string{"--egress", "off"}},
				{"limited", []string{"--egress", "required", "--allow-private", allowedNetwork}},
			} {
				if c.name == "not limited" && engine != reached && !storetest.Long() {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					d := daemon.Start(t, as(t, daemon.Options{NoSpares: true, Args: c.args}))
					x := newEgressAttacker(t, d, engine)
					x.attack()
					if c.name == "limited" {
						x.expectRefused()
					} else {
						x.expectReached()
					}
				})
			}
		})
	}
}

// egressAttacker is a session, a site in the allowed network, and the server that must not
// be reached.
type egressAttacker struct {
	t      *testing.T
	d      *daemon.Daemon
	engine string
	s      liveSession
	w      *wire
	page   string
	site   *httptest.Server
	victim *victim
}

func newEgressAttacker(t *testing.T, d *daemon.Daemon, engine string) *egressAttacker {
	x := &egressAttacker{t: t, d: d, engine: engine, victim: newVictim(t)}
	l, err := net.Listen("tcp", "127.77.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.site = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(x.serve)}}
	x.site.Start()
	t.Cleanup(x.site.Close)
	x.s = begin(t, d, obj{"engine": engine})
	x.w = dial(t, x.s.CDP)
	x.page, _ = x.w.page()
	x.w.open(x.page, x.site.URL+"/")
	return x
}

func (x *egressAttacker) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/redirect":
		http.Redirect(w, r, x.victim.url("127.0.0.1", "redirect"), http.StatusFound)
	case "/worker.js":
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = fmt.Fprintf(w, `fetch(%q, {mode: "no-cors"}).catch(() => 0).then(() => postMessage("done"))`, x.victim.url("127.0.0.1", "worker"))
	case "/service.js":
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = fmt.Fprintf(w, `oninstall = (e) => e.waitUntil(fetch(%q, {mode: "no-cors"}).catch(() => 0))`, x.victim.url("127.0.0.1", "service-worker"))
	default:
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<title>site</title><body>plain</body>`)
	}
}

// spellings are ways to write an address of the server, by the name of their path.
var spellings = map[string]string{
	"dotted": "127.0.0.1", "decimal": "2130706433", "hexadecimal": "0x7f000001", "octal": "017700000001", "short": "127.1", "other": "127.8.8.8",
	"name": "localhost", "ipv6": "[::1]", "mapped": "[::ffff:127.0.0.1]", "unspecified": "0.0.0.0",
}

// attack makes all attempts and waits until each has failed or has reached the server.
func (x *egressAttacker) attack() {
	var fetches []string
	for name, host := range spellings {
		fetches = append(fetches, fmt.Sprintf("fetch(%q, {mode: 'no-cors'})", x.victim.url(host, name)))
	}
	local := func(path string) string { return x.victim.url("127.0.0.1", path) }
	element := func(tag, source, path string) string {
		return fmt.Sprintf("new Promise((ok) => { const e = document.createElement(%q); e.onload = e.onerror = ok; e.%s = %q; document.body.append(e) })", tag, source, local(path))
	}
	x.w.eval(x.page, `Promise.allSettled([`+strings.Join(append(fetches,
		`fetch("/redirect", {mode: "no-cors"})`,
		fmt.Sprintf("fetch(%q, {mode: 'no-cors'})", x.d.URL+"/openapi.yaml"),
		element("img", "src", "image"), element("script", "src", "script"), element("iframe", "src", "frame"),
		fmt.Sprintf("new Promise((ok) => { const s = new WebSocket(%q); s.onclose = s.onerror = ok })", strings.Replace(local("websocket"), "http", "ws", 1)),
		fmt.Sprintf("new Promise((ok) => { const s = new EventSource(%q); s.onerror = () => { s.close(); ok() } })", local("events")),
		`new Promise((ok) => { new Worker("/worker.js").onmessage = ok })`,
		`navigator.serviceWorker.register("/service.js").then((r) => navigator.serviceWorker.ready)`,
	), ",")+`]).then(() => "done")`)
	// These do not say when they have failed.
	x.w.eval(x.page, fmt.Sprintf(`navigator.sendBeacon(%q)`, local("beacon")))
	x.w.eval(x.page, fmt.Sprintf(`(async () => {
		const c = window.connection = new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:%d"}]});
		c.createDataChannel("x");
		await c.setLocalDescription(await c.createOffer());
		return "done" })()`, x.victim.stun.port))
	x.w.eval(x.page, fmt.Sprintf(`new WebTransport("https://127.0.0.1:%d/").ready.catch(() => 0), 1`, x.victim.quic.port))
	// A client of the session.
	var other struct{ TargetID, BrowserContextID string }
	x.w.call("", "Target.createTarget", obj{"url": "about:blank"}, &other)
	x.w.try(x.w.attach(other.TargetID), "Page.navigate", obj{"url": local("navigation")})
	x.w.call("", "Target.createBrowserContext", obj{"proxyServer": fmt.Sprintf("http://127.0.0.1:%d", x.victim.port), "proxyBypassList": "<-loopback>"}, &other)
	x.w.call("", "Target.createTarget", obj{"url": "about:blank", "browserContextId": other.BrowserContextID}, &other)
	x.w.try(x.w.attach(other.TargetID), "Page.navigate", obj{"url": "http://127.77.0.1/proxy"})
	if x.engine == "chrome" {
		x.byExtension()
	}
}

// byExtension starts a session with an extension that connects to the server. The session's
// own attempts have been made.
func (x *egressAttacker) byExtension() {
	id := uploadExtension(x.t, x.d, map[string]string{
		"manifest.json": `{"manifest_version": 3, "name": "Caller", "version": "1", "host_permissions": ["<all_urls>"], "background": {"service_worker": "background.js"}}`,
		"background.js": fmt.Sprintf("fetch(%q).catch(() => 0)", x.victim.url("127.0.0.1", "extension")),
	})
	s := begin(x.t, x.d, obj{"engine": x.engine, "extensions": []string{id}})
	daemon.Eventually(x.t, grace, "the extension has connected", func() bool {
		return x.victim.reached("extension") || slices.Contains(historyOf(x.t, x.d, s.ID)[0].types(), "egress_refused")
	})
	finish(x.t, x.d, s.ID, throwAway)
}

// paths are all that the attempts ask the server for.
func (x *egressAttacker) paths() []string {
	all := append(slices.Collect(maps.Keys(spellings)), "redirect", "image", "script", "frame", "websocket", "events", "worker", "service-worker", "beacon", "navigation", "proxy")
	if x.engine == "chrome" {
		all = append(all, "extension")
	}
	return all
}

func (x *egressAttacker) expectReached() {
	for _, path := range x.paths() {
		daemon.Eventually(x.t, grace, "an attempt reaches the server: "+path, func() bool { return x.victim.reached(path) })
	}
	daemon.Eventually(x.t, grace, "WebRTC reaches the server", x.victim.stun.reached)
	daemon.Eventually(x.t, grace, "QUIC reaches the server", x.victim.quic.reached)
	daemon.Eventually(x.t, grace, "a page reaches the daemon", func() bool { return strings.Contains(x.d.Log(), "route=/openapi.yaml") })
}

func (x *egressAttacker) expectRefused() {
	for _, want := range []string{fmt.Sprintf("tcp 127.0.0.1:%d", x.victim.port), fmt.Sprintf("tcp [::1]:%d", x.victim.port), "tcp " + strings.TrimPrefix(x.d.URL, "http://"),
		fmt.Sprintf("udp 127.0.0.1:%d", x.victim.stun.port), fmt.Sprintf("udp 127.0.0.1:%d", x.victim.quic.port)} {
		daemon.Eventually(x.t, grace, "an event says that this was refused: "+want, func() bool {
			for _, e := range historyOf(x.t, x.d, x.s.ID)[0].events {
				if e.Type == "egress_refused" && fmt.Sprint(e.Data["protocol"], " ", e.Data["address"]) == want {
					return true
				}
			}
			return false
		})
	}
	for _, path := range x.paths() {
		if x.victim.reached(path) {
			x.t.Errorf("an attempt reached the server: %s", path)
		}
	}
	if n := x.victim.connections(); n > 0 {
		x.t.Errorf("%d connections reached the server", n)
	}
	if x.victim.stun.reached() || x.victim.quic.reached() {
		x.t.Error("a datagram reached the server")
	}
	if strings.Contains(x.d.Log(), "route=/openapi.yaml") {
		x.t.Error("a page reached the daemon")
	}
	var failed struct{ ErrorText string }
	x.w.call(x.page, "Page.navigate", obj{"url": x.victim.url("127.0.0.1", "again")}, &failed)
	if failed.ErrorText != "net::ERR_CONNECTION_REFUSED" {
		x.t.Errorf("a refused page fails with %q", failed.ErrorText)
	}
	if metrics := string(x.d.Must(x.t, 200, "GET", "/metrics", nil).Body); !strings.Contains(metrics, "stasis_egress_refused_total ") || strings.Contains(metrics, "stasis_egress_refused_total 0\n") {
		x.t.Error("the metrics count no refused packets")
	}
}

// victim is a server at all addresses of the machine. It records what reaches it.
type victim struct {
	port       int
	stun, quic *datagrams

	mu    sync.Mutex
	paths map[string]bool
	conns int
}

func newVictim(t *testing.T) *victim { return newVictimAt(t, "") }

// newVictimAt makes a server at one address of the machine.
func newVictimAt(t *testing.T, host string) *victim {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{port: l.Addr().(*net.TCPAddr).Port, paths: map[string]bool{}, stun: newDatagrams(t), quic: newDatagrams(t)}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: v, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.conns++
		}
	}}}
	server.Start()
	t.Cleanup(server.Close)
	return v
}

func (v *victim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.paths[strings.TrimPrefix(r.URL.Path, "/")] = true
	w.Header().Set("Access-Control-Allow-Origin", "*")
}

// url returns the address of a path at a host of the server.
func (v *victim) url(host, path string) string {
	return fmt.Sprintf("http://%s:%d/%s", host, v.port, path)
}

func (v *victim) reached(path string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.paths[path]
}

func (v *victim) connections() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.conns
}

// datagrams is a UDP port that records whether a datagram reached it.
type datagrams struct {
	port int
	got  chan struct{} // closed by the first
}

func newDatagrams(t *testing.T) *datagrams {
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	d := &datagrams{port: conn.LocalAddr().(*net.UDPAddr).Port, got: make(chan struct{})}
	go func() {
		if _, _, err := conn.ReadFrom(make([]byte, 1)); err == nil {
			close(d.got)
		}
	}()
	return d
}

func (d *datagrams) reached() bool {
	select {
	case <-d.got:
		return true
	default:
		return false
	}
}

// A daemon that cannot limit addresses says so, and does not start if that is required.
func TestEgressNotLimited(t *testing.T) {
	t.Parallel()
	o := byOrdinaryUser(t, daemon.Options{NoSpares: true})
	o.Prefix = append(o.Prefix, "env", "PATH=/nowhere") // no pasta
	d := daemon.Start(t, o)
	if got := string(d.Must(t, http.StatusOK, http.MethodGet, "/readyz", nil).Body); !strings.Contains(got, `"egress":{"enforced":false}`) {
		t.Errorf("readyz says %s", got)
	}
	const reason = "pasta is not installed; install it with: apt-get update && apt-get install passt"
	if log := d.Log(); !strings.Contains(log, "the addresses that browsers connect to are not limited") || !strings.Contains(log, reason) {
		t.Error("the log has no warning with the reason")
	}
	if code, said := serve(t, o.Prefix, "--data-dir", byOrdinaryUser(t, daemon.Options{}).Dir, "--egress", "required"); code != 2 || !strings.Contains(said, reason) {
		t.Errorf("exit code %d, want 2:\n%s", code, said)
	}
}

// With pasta an ordinary user's daemon limits addresses by default. Nothing of it outlives
// its Chromes.
func TestEgressOrdinary(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"stopped", "killed"} {
		t.Run(end, func(t *testing.T) {
			d := daemon.Start(t, byOrdinaryUserWithTun(t, daemon.Options{ShellSpare: true}))
			if got := string(d.Must(t, http.StatusOK, http.MethodGet, "/readyz", nil).Body); !strings.Contains(got, `"egress":{"enforced":true}`) {
				t.Errorf("readyz says %s", got)
			}
			s := begin(t, d, obj{"engine": "chrome"})
			finish(t, d, s.ID, "save_snapshot_mode=memory") // parked, so frozen
			begin(t, d, obj{"engine": "shell"})
			ours := func() (all []string) {
				for _, pid := range pids(t) {
					line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					if err == nil && strings.Contains(string(line), d.Dir+"/") {
						all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
					}
				}
				return all
			}
			if n := strings.Count(strings.Join(ours(), "\n"), "--config-net"); n < 2 {
				t.Errorf("%d processes of pasta, want one for each Chrome", n)
			}
			if end == "killed" {
				d.Kill(t)
			} else {
				d.Stop(t)
			}
			daemon.Eventually(t, grace, "no process is left", func() bool { return len(ours()) == 0 })
		})
	}
}

// pids returns the IDs of all processes.
func pids(t *testing.T) (all []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// The proxy of a session is its only way out: a client that makes a context without it, and
// datagrams, which no proxy takes, reach nothing. The proxy needs no password.
func TestAttackProxyOnly(t *testing.T) {
	t.Parallel()
	attackProxyOnly(t, byRoot)
}

// TestAttackProxyOnlyOrdinary is TestAttackProxyOnly on the daemon of an ordinary user.
func TestAttackProxyOnlyOrdinary(t *testing.T) {
	t.Parallel()
	attackProxyOnly(t, byOrdinaryUserWithTun)
}

func attackProxyOnly(t *testing.T, as runAs) {
	for _, engine := range []string{"chrome", "shell"} {
		t.Run(engine, func(t *testing.T) {
			for _, limited := range []bool{false, true} {
				egress := "off"
				if limited {
					egress = "required"
				}
				d := daemon.Start(t, as(t, daemon.Options{NoSpares: true, Args: []string{"--egress", egress}}))
				v := newVictim(t)
				proxy := newVictim(t)
				s := begin(t, d, obj{"engine": engine, "proxy": obj{"server": fmt.Sprintf("http://127.0.0.1:%d", proxy.port), "bypass": "<-loopback>"}})
				w := dial(t, s.CDP)
				page, _ := w.page()
				w.open(page, v.url("127.0.0.1", "proxied"))
				if !proxy.reached("proxied") || v.reached("proxied") {
					t.Fatalf("%s: the page did not come through the proxy", egress)
				}
				var made struct{ BrowserContextID, TargetID string }
				w.call("", "Target.createBrowserContext", obj{"proxyServer": "direct://"}, &made)
				w.call("", "Target.createTarget", obj{"url": "about:blank", "browserContextId": made.BrowserContextID}, &made)
				direct := w.attach(made.TargetID)
				w.try(direct, "Page.navigate", obj{"url": v.url("127.0.0.1", "direct")})
				w.eval(direct, fmt.Sprintf(`new WebTransport("https://127.0.0.1:%d/").ready.catch(() => 0).then(() => 1)`, v.quic.port))
				if limited == v.reached("direct") || limited == v.quic.reached() {
					t.Errorf("--egress %s: reached without the proxy: over TCP %v, over UDP %v", egress, v.reached("direct"), v.quic.reached())
				}
			}
		})
	}
}

// The rules of a daemon stay while its Chromes may run, also when it is killed. The next
// start replaces them, and a stop removes them.
func TestEgressRulesOutliveAKill(t *testing.T) {
	t.Parallel()
	base := daemon.UIDBase()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--egress", "required"}, UIDBase: base})
	name := fmt.Sprint("stasis-", base)
	there := func() bool {
		kernel, err := nftables.New()
		if err != nil {
			t.Fatal(err)
		}
		tables, err := kernel.ListTables()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(tables, func(table *nftables.Table) bool { return table.Name == name })
	}
	if !there() {
		t.Fatalf("there is no table %s", name)
	}
	d.Kill(t)
	if !there() {
		t.Error("the rules ended with the killed daemon")
	}
	d.Restart(t)
	if !there() {
		t.Error("the next daemon has no rules")
	}
	d.Stop(t)
	if there() {
		t.Error("the rules outlive a daemon that was stopped")
	}
}
