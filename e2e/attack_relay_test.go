package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// TestAttackRelay checks that a session cannot use another session's proxy. The daemon's
// relay, which adds the proxy's password, serves only the processes of its own Chrome.
// If an ordinary user runs the daemon, all Chromes have one user ID. make test has one
// engine for each user of the daemon, and gives the relay a password with one of them;
// make test-long has all combinations.
func TestAttackRelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		user, engine string
		short        bool // make test has it too
	}{{"root", "shell", true}, {"ordinary user", "chrome", true}, {"root", "chrome", false}, {"ordinary user", "shell", false}} {
		if !c.short && !storetest.Long() {
			continue
		}
		t.Run(c.user+", "+c.engine, func(t *testing.T) {
			o := daemon.Options{NoSpares: true}
			if c.user != "root" {
				o = byOrdinaryUser(t, o)
			}
			othersRelay(t, o, c.engine)
		})
	}
}

func othersRelay(t *testing.T, o daemon.Options, engine string) {
	d := daemon.Start(t, o)
	site, beyond := proxied(t)
	s := begin(t, d, obj{"engine": engine, "user_id": "bob",
		"proxy": obj{"server": beyond.url, "username": "ada", "password": "secret", "bypass": "<-loopback>"}})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site+"/own")
	if !beyond.sent("/own") {
		t.Fatal("the session does not use its proxy")
	}
	relay := relayOf(t, d)
	for _, path := range []string{"/bare", "/named"} {
		if !storetest.Long() && (path == "/named") != (engine == "chrome") {
			continue
		}
		proxy := obj{"server": relay, "bypass": "<-loopback>"}
		if path == "/named" {
			proxy["username"], proxy["password"] = "x", "y"
		}
		other := begin(t, d, obj{"engine": engine, "user_id": "eve", "proxy": proxy})
		w := dial(t, other.CDP)
		page, _ := w.page()
		w.try(page, "Page.navigate", obj{"url": site + path}) // answered when it has failed or loaded
		if beyond.sent(path) {
			t.Errorf("%s: reached the site through the other session's proxy", path)
		}
		var made struct{ BrowserContextID, TargetID string }
		if r := w.try("", "Target.createBrowserContext", obj{"proxyServer": relay, "proxyBypassList": "<-loopback>"}); r.Error == nil {
			if err := json.Unmarshal(r.Result, &made); err != nil {
				t.Fatal(err)
			}
			w.call("", "Target.createTarget", obj{"url": "about:blank", "browserContextId": made.BrowserContextID}, &made)
			w.try(w.attach(made.TargetID), "Page.navigate", obj{"url": site + "/context"})
			if beyond.sent("/context") {
				t.Error("a browser context reached the site through the other session's proxy")
			}
		}
		finish(t, d, other.ID, throwAway)
	}
	w.open(page, site+"/after")
	if !beyond.sent("/after") {
		t.Error("the session no longer uses its proxy")
	}
}

// proxyBeyond is a proxy with a password that records the requested paths.
type proxyBeyond struct {
	url string
	mu  sync.Mutex
	got map[string]bool
}

func (b *proxyBeyond) sent(path string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got[path]
}

// proxied starts a site and a proxy in front of it.
func proxied(t *testing.T) (site string, b *proxyBeyond) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<title>site</title>")
	}))
	t.Cleanup(s.Close)
	b = &proxyBeyond{got: map[string]bool{}}
	forward := httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(*httputil.ProxyRequest) {}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:secret")):
			w.WriteHeader(http.StatusProxyAuthRequired)
		case r.Method == http.MethodConnect: // a request of Chrome itself
			w.WriteHeader(http.StatusBadGateway)
		default:
			b.mu.Lock()
			b.got[r.URL.Path] = true
			b.mu.Unlock()
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	b.url = proxy.URL
	return s.URL, b
}

// socketsOf returns the inodes of the sockets that a daemon has open.
func socketsOf(t *testing.T, d *daemon.Daemon) map[string]bool {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", d.PID()))
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:[") {
			open[strings.Trim(to[len("socket:"):], "[]")] = true
		}
	}
	return open
}

// relayOf finds the relay of the only session: the address on which the daemon listens
// besides its own.
func relayOf(t *testing.T, d *daemon.Daemon) string {
	t.Helper()
	open := socketsOf(t, d)
	raw, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[3] != "0A" || !open[fields[9]] { // 0A: it is listening
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if at := fmt.Sprintf("http://127.0.0.1:%d", port); err == nil && at != d.URL {
			return at
		}
	}
	t.Fatal("the daemon listens on no relay address")
	return ""
}
