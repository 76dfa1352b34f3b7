package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// Overrides are named once and are restored with the environment: for the pages of real
// clients, through a proxy with a password, and if the parked Chrome runs with others.
// The proxy's password appears nowhere.
func overridesComeBack(t *testing.T, d *daemon.Daemon) {
	const password = "pass-word-of-the-proxy"
	var mu sync.Mutex
	firsts := map[string]string{} // a header of each path's first request
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if _, seen := firsts[r.URL.Path]; !seen {
			firsts[r.URL.Path] = r.Header.Get("X-Extra") + " " + r.Header.Get("X-Proxied") + " " + r.UserAgent()
		}
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<script>document.title = [navigator.userAgent, navigator.language, new Date(0).getHours(),
			Intl.NumberFormat().resolvedOptions().locale].join("|")</script>`)
	}))
	t.Cleanup(site.Close)
	forward := httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(p *httputil.ProxyRequest) { p.Out.Header.Set("X-Proxied", "yes") }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:"+password)) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method == http.MethodConnect { // a request of Chrome itself, to a site that does not exist here
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)

	const shown = "mine/1|fr-FR|9|fr-FR"
	check := func(cdp, client, path string) {
		t.Helper()
		got := drive(t, client, cdp, openTab(site.URL+path), evaluate("document.title"))
		if title := text(t, got[len(got)-1]); title != shown {
			t.Errorf("%s in %s: the page has %s", path, client, title)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := firsts[path]; got != "yes yes mine/1" {
			t.Errorf("%s in %s: its first request had %q", path, client, got)
		}
	}
	var s created
	made := d.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions", body{
		"user_agent": "mine/1", "locale": "fr-FR", "timezone": "Asia/Tokyo", "extra_headers": obj{"X-Extra": "yes"},
		"proxy": obj{"server": proxy.URL, "username": "ada", "password": password, "bypass": "<-loopback>"}})
	made.Into(t, &s)
	check(s.CDP, puppeteer, "/one")
	check(s.CDP, playwright, "/two")
	snapshot := save(t, d, s.ID, "memory")

	back := d.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions", body{
		"restore_from_environment_id": snapshot.ID, "viewport": obj{"width": 600, "height": 500}})
	var again created
	back.Into(t, &again)
	if r := again.Restored; r.Mode != "filesystem" || !strings.Contains(r.FallbackReason, "viewport") {
		t.Errorf("restored from %s: %q", r.Mode, r.FallbackReason)
	}
	overrides := 0
	for _, c := range again.Restored.Components {
		if c.Name == "overrides" && c.Saved == 5 && c.Restored == 5 {
			overrides++
		}
	}
	if overrides != 1 {
		t.Errorf("the report says %+v", again.Restored.Components)
	}
	check(again.CDP, puppeteer, "/three")
	end(t, d, again.ID, "")
	state := d.Call(t, http.MethodGet, "/v1/snapshots/"+snapshot.ID+"/state?format=stasis", nil)
	if !strings.Contains(string(state.Body), `"mine/1"`) {
		t.Errorf("the state lacks the overrides: %.300s", state.Body)
	}
	for what, shown := range map[string]string{"the state": string(state.Body), "a create": string(made.Body), "a restore": string(back.Body), "the log": d.Log(),
		"the session": string(d.Call(t, http.MethodGet, at(s.ID), nil).Body), "the snapshot": string(d.Call(t, http.MethodGet, "/v1/snapshots/"+snapshot.ID, nil).Body)} {
		if strings.Contains(shown, password) {
			t.Errorf("%s contains the proxy's password", what)
		}
	}
}
