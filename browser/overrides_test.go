package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// mirror is a site whose pages report the overrides that they see in their first inline
// script. It also records the headers of every request.
type mirror struct {
	url, other string // the same site under two names, which Chrome treats as two sites
	mu         sync.Mutex
	sees       func(*http.Request)          // called for every request; may be nil
	headers    map[string]http.Header       // of the first request of each path
	seen       map[string]map[string]string // the first report of each document and worker
}

const show = `const show = who => fetch('/show?' + new URLSearchParams({who, ua: navigator.userAgent,
  languages: navigator.languages.join(), zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  locale: Intl.NumberFormat().resolvedOptions().locale, brands: navigator.userAgentData?.brands.map(b => b.version).join() ?? '',
  size: self.innerWidth ? innerWidth + 'x' + innerHeight + '@' + devicePixelRatio : ''}));`

func newMirror(t *testing.T) *mirror {
	m := &mirror{headers: map[string]http.Header{}, seen: map[string]map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.sees != nil {
			m.sees(r)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		w.Header().Set("Cache-Control", "no-store")
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "show" {
			q := r.URL.Query()
			if m.seen[q.Get("who")] == nil {
				m.seen[q.Get("who")] = map[string]string{"header": r.Header.Get("X-Extra")}
				for k := range q {
					m.seen[q.Get("who")][k] = q.Get(k)
				}
			}
			return
		}
		if m.headers[name] == nil {
			m.headers[name] = r.Header.Clone()
		}
		script := fmt.Sprintf("%s show(%q);", show, name)
		if strings.HasSuffix(name, ".js") {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(w, script)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<!doctype html><meta name=viewport content='width=device-width'><title>%s</title><script>%s</script>", name, script)
		if name == "page" {
			_, _ = fmt.Fprintf(w, `<iframe src="%s/frame"></iframe><script>
				new Worker('/worker.js'); new SharedWorker('/shared.js'); navigator.serviceWorker.register('/service.js')</script>`, m.other)
		}
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	m.other = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	return m
}

// reports waits until each of these has reported, and returns the reports.
func (m *mirror) reports(t *testing.T, who ...string) map[string]map[string]string {
	t.Helper()
	var missing string
	all := map[string]map[string]string{}
	await(t, "every document and worker has reported", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		missing = ""
		for _, name := range who {
			if all[name] = m.seen[name]; all[name] == nil {
				missing += " " + name
			}
		}
		return missing == ""
	})
	return all
}

func (m *mirror) header(path, name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.headers[path].Get(name)
}

// forget clears the records, so that the next requests and reports count as the first.
func (m *mirror) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.headers, m.seen = map[string]http.Header{}, map[string]map[string]string{}
}

var allOverrides = state.Overrides{
	Viewport:     &state.Viewport{Width: 400, Height: 700, DeviceScaleFactor: 2, Mobile: true},
	UserAgent:    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36",
	Locale:       "fr-FR",
	Timezone:     "Asia/Tokyo",
	Geolocation:  &state.Geolocation{Latitude: 48.85, Longitude: 2.35, Accuracy: 10},
	ExtraHeaders: map[string]string{"X-Extra": "yes"},
}

// checkReport compares the report of one document or worker with the overrides.
func checkReport(t *testing.T, who string, report map[string]string) {
	t.Helper()
	want := map[string]string{"ua": allOverrides.UserAgent, "languages": "fr-FR,fr", "zone": "Asia/Tokyo", "locale": "fr-FR", "header": "yes"}
	if !strings.HasSuffix(who, ".js") {
		want["brands"] = "8,150,150"
	}
	if who == "page" || who == "popup" || who == "late" {
		want["size"] = "400x700@2"
	}
	for k, v := range want {
		if report[k] != v {
			t.Errorf("%s: %s is %q, want %q", who, k, report[k], v)
		}
	}
}

var everyone = []string{"page", "frame", "worker.js", "shared.js", "service.js"}

func TestOverridesHoldEverywhere(t *testing.T) {
	r, m := newRig(t), newMirror(t)
	b, err := r.Fresh(within(t), r.dir(), Options{Engine: r.engine, Overrides: allOverrides})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	check := func(firsts ...string) {
		t.Helper()
		for who, report := range m.reports(t, everyone...) {
			checkReport(t, who, report)
		}
		for _, path := range firsts {
			if got := m.header(path, "X-Extra") + " " + m.header(path, "Accept-Language"); got != "yes fr-FR,fr;q=0.9" {
				t.Errorf("the first request of %s had %q", path, got)
			}
		}
	}
	r.open(b, m.url+"/page")
	check("page", "frame", "worker.js", "shared.js")

	// A page opens another, which is paused before its first request.
	yes := true
	at, err := cdp.Call(within(t), b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: r.page(b, m.url+"/page"), Flatten: &yes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cdp.Call(within(t), b.driver.Session(at.SessionID), runtime.Evaluate,
		runtime.EvaluateParams{Expression: fmt.Sprintf("window.open(%q)", m.other+"/popup"), UserGesture: &yes}); err != nil {
		t.Fatal(err)
	}
	checkReport(t, "popup", m.reports(t, "popup")["popup"])
	if got := m.header("popup", "X-Extra"); got != "yes" {
		t.Errorf("the first request of a popup had X-Extra %q", got)
	}

	raw, err := json.Marshal(r.closed(b))
	if err != nil {
		t.Fatal(err)
	}
	var doc state.Document
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}

	m.forget()
	_, report := r.restored(b.dir, doc, Options{RestoreTabs: true})
	for who, report := range m.reports(t, "page", "popup", "frame", "worker.js", "shared.js") {
		checkReport(t, who, report)
	}
	for _, path := range []string{"page", "popup", "frame"} {
		if got := m.header(path, "X-Extra") + " " + m.header(path, "Accept-Language"); got != "yes fr-FR,fr;q=0.9" {
			t.Errorf("the first request of the restored %s had %q", path, got)
		}
	}
	if got := line(report, state.ComponentOverrides, ""); got.Saved != 6 || got.Restored != 6 {
		t.Errorf("the report says %+v", got)
	}
}

// liveCopy freezes a Chrome that shows the mirror's page, and copies its environment.
func (m *mirror) liveCopy(t *testing.T, r *rig) (*Dir, state.Document) {
	t.Helper()
	b, err := r.Fresh(within(t), r.dir(), Options{Engine: r.engine, Overrides: allOverrides})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	r.open(b, m.url+"/page")
	m.reports(t, everyone...)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	m.forget()
	return r.copied(b), doc
}

// The tabs of a running Chrome's copy load anew with the same overrides.
func TestOverridesOfALiveCopy(t *testing.T) {
	r, m := newRigOfEither(t), newMirror(t)
	dir, doc := m.liveCopy(t, r)
	r.restored(dir, doc, Options{RestoreTabs: true})
	for who, report := range m.reports(t, "page", "frame", "worker.js", "shared.js") {
		checkReport(t, who, report)
	}
	if got := m.header("page", "X-Extra"); got != "yes" {
		t.Errorf("the first request of the restored page had X-Extra %q", got)
	}
}
