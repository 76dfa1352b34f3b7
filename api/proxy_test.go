package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// Behind a proxy with TLS, the addresses in answers have the scheme and the host of the
// proxy, and clients and the live view connect there. Pages of other hosts may not.
func TestBehindTLSProxy(t *testing.T) {
	r := newRig(t, func(o *Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	daemon, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(daemon)
		p.SetXForwarded()
	}})
	defer proxy.Close()
	get := func(address string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+goodKey)
		answer, err := proxy.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %d %s, %v", address, answer.StatusCode, body, err)
		}
		return string(body)
	}

	var session struct {
		CDP  string `json:"cdp_url"`
		View string `json:"vnc_url"`
	}
	if err := json.Unmarshal([]byte(get(proxy.URL+"/v1/sessions/live-1")), &session); err != nil {
		t.Fatal(err)
	}
	socket := strings.Replace(proxy.URL, "https:", "wss:", 1)
	if !strings.HasPrefix(session.CDP, socket+"/v1/") || !strings.HasPrefix(session.View, proxy.URL+"/v1/") {
		t.Errorf("the addresses behind %s: %+v", proxy.URL, session)
	}
	if page := get(session.View); !strings.Contains(page, `id="picture"`) {
		t.Errorf("the live view: %.200s", page)
	}
	view := strings.Replace(strings.Replace(session.View, "/live?", "/live/socket?", 1), "https:", "wss:", 1)
	for _, address := range []string{session.CDP, view} {
		for origin, status := range map[string]int{proxy.URL: http.StatusSwitchingProtocols, r.url: http.StatusForbidden} {
			ws, answer, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{ //nolint:bodyclose // an upgrade has none, and a refusal's is small
				HTTPClient: proxy.Client(), HTTPHeader: http.Header{"Origin": {origin}},
			})
			if answer == nil || answer.StatusCode != status {
				t.Errorf("%s from a page of %s: %v, %v, want %d", address, origin, answer, err, status)
			}
			if err == nil {
				_ = ws.CloseNow()
			}
		}
	}
}
