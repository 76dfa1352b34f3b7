package browser

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/state"
)

// A proxy with a password serves every page, also after a restore that names no proxy.
// Only the document contains the password.
func TestAProxyWithAPassword(t *testing.T) {
	r, s := newRigOfEither(t), newSite(t, nil)
	var mu sync.Mutex
	var through []string
	forward := httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:se:cret")) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		mu.Lock()
		through = append(through, req.URL.Path)
		mu.Unlock()
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(proxy.Close)
	seen := func(path string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(through, path)
	}
	b, err := r.Fresh(within(t), r.dir(), Options{Engine: r.engine, Overrides: state.Overrides{
		Proxy: &state.Proxy{Server: proxy.URL, Username: "ada", Password: "se:cret", Bypass: "<-loopback>"}}})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	r.open(b, s.url+"/one")
	if !seen("/one") {
		t.Error("the page was not loaded through the proxy")
	}
	doc := r.closed(b)
	if doc.Overrides.Proxy.Password != "se:cret" {
		t.Error("the document lacks the password")
	}
	if flags := strings.Join(doc.Chrome.Flags, " "); strings.Contains(flags, "cret") {
		t.Errorf("Chrome was started with %s", flags)
	}
	b, _ = r.restored(b.dir, doc, Options{RestoreTabs: true})
	r.open(b, s.url+"/two")
	if !seen("/two") {
		t.Error("the restored session does not use the proxy")
	}
	doc = r.closed(b)
	b, _ = r.restored(b.dir, doc, Options{Overrides: state.Overrides{Proxy: &state.Proxy{Server: state.ProxyDirect}}})
	r.open(b, s.url+"/three")
	if seen("/three") {
		t.Error("direct:// went through the proxy")
	}
}
