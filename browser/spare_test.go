package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// spare starts a spare with default options.
func (r *rig) spare() *Spare {
	r.t.Helper()
	return r.spareOf(EngineChrome)
}

func (r *rig) spareOf(engine string) *Spare {
	r.t.Helper()
	return r.spareWith(Options{Engine: engine, Gates: true})
}

func (r *rig) spareWith(o Options) *Spare {
	r.t.Helper()
	p, err := r.Spare(within(r.t), r.dir(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.ends(p.b)
	return p
}

// A spare becomes a fresh session unchanged. The saved environment of that session is
// loaded completely into another spare, saved and loaded again: by gates, and as another
// profile.
func TestSpares(t *testing.T) {
	t.Run("gates", func(t *testing.T) { checkSpares(t, true) })
	t.Run("no gates", func(t *testing.T) { checkSpares(t, false) })
}

func checkSpares(t *testing.T, gates bool) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": seen, "/two": seen})
	b, err := r.spareWith(Options{Gates: gates}).Fresh(within(t), Options{RestoreTabs: true})
	if err != nil {
		t.Fatal(err)
	}
	if pages, err := b.Pages(within(t)); err != nil || len(pages) != 1 || pages[0].URL != blankURL {
		t.Errorf("a fresh session shows %+v, %v", pages, err)
	}
	r.fillTabs(b, s)
	for range 2 {
		doc := r.closed(b)
		files, err := b.Environment(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := make([]string, 0, len(files))
		for _, f := range files {
			names = append(names, f.Name)
			if !strings.HasPrefix(f.Name, "Default/") {
				t.Errorf("%s is not a file of an environment", f.Name)
			}
		}
		if !slices.Contains(names, "Default/Cookies") {
			t.Errorf("the environment has only %v", names)
		}
		p := r.spareWith(Options{Gates: gates})
		r.load(p, b)
		before := len(s.requests())
		var report []state.Component
		if b, report, err = p.Restored(within(t), doc, Options{RestoreTabs: true}); err != nil {
			t.Fatal(err)
		}
		if b.entered != gates {
			t.Errorf("by gates: %v, want %v; %s", b.entered, gates, b.SecondProfileReason())
		}
		if !gates {
			r.hidesLeftover(b)
			r.closesAlreadyClosed(b)
		}
		if diff := cmp.Diff(restoredTabs, r.readTabs(b, s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		asked := s.requests()[before:]
		slices.Sort(asked)
		if diff := cmp.Diff([]string{"/one session=s1; kept=k1", "/two session=s1; kept=k1"}, sortCookies(asked)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		found, err := b.Verify(within(t), doc, report)
		if err != nil || len(found.Differences) != 0 {
			t.Errorf("verification: %+v, %v; the document has %+v", found, err, doc)
		}
	}
}

// hidesLeftover checks as a client that the empty profile is hidden while it still
// exists. A client that waits for every target that it sees would otherwise wait for the
// empty profile to close.
func (r *rig) hidesLeftover(b *Browser) {
	r.t.Helper()
	b.tabs.leftover.mu.Lock() // keeps it open during the test
	defer b.tabs.leftover.mu.Unlock()
	if len(b.tabs.leftover.tabs) == 0 {
		r.t.Fatal("the empty profile has closed already")
	}
	c, served := newConn(), make(chan error, 1)
	go func() { served <- b.Serve(context.Background(), c, mux.ServeOptions{Admission: b.Admission()}) }()
	answer := c.call(r.t, `{"id":1,"method":"Target.getTargets","params":{"filter":[{}]}}`)
	var seen struct {
		Result target.GetTargetsResult
	}
	if err := json.Unmarshal(answer, &seen); err != nil {
		r.t.Fatal(err)
	}
	count := map[string]int{}
	for _, info := range seen.Result.TargetInfos {
		count[info.Type]++
	}
	if count["tab"] != 2 || count["page"] != 2 {
		r.t.Errorf("a client sees %v", count)
	}
	c.call(r.t, `{"id":2,"method":"Browser.close"}`)
	if err := <-served; err != nil {
		r.t.Error(err)
	}
}

// closesAlreadyClosed checks that closeLeftover accepts a leftover tab that an earlier caller
// closed before it was cancelled. Otherwise screenshots and saves would fail from then
// on.
func (r *rig) closesAlreadyClosed(b *Browser) {
	r.t.Helper()
	b.tabs.leftover.mu.Lock()
	tabs := b.tabs.leftover.tabs
	b.tabs.leftover.mu.Unlock()
	if len(tabs) == 0 {
		r.t.Fatal("the empty profile has closed already")
	}
	if err := b.tabs.closeLeftover(within(r.t)); err != nil {
		r.t.Fatal(err)
	}
	b.tabs.leftover.mu.Lock()
	b.tabs.leftover.tabs = tabs
	b.tabs.leftover.mu.Unlock()
	if _, err := b.Pages(within(r.t)); err != nil {
		r.t.Errorf("after the empty profile has closed: %v", err)
	}
}

// load copies a closed Chrome's environment into a spare's directory, as unpacking an
// archive would.
func (r *rig) load(p *Spare, from *Browser) {
	r.t.Helper()
	files, err := from.Environment(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range files {
		to := filepath.Join(UnpackDir(p.Dir(), p.b.options.Engine).Profile(), f.Name)
		body, err := contentOf(f)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, body, 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// For settings that Chrome reads from a profile (permissions, languages, a proxy), an
// empty profile is loaded into the spare. They apply to every document and worker from
// the first request on, and in contexts that clients create.
func TestSpareForOtherProfiles(t *testing.T) {
	r, m := newRig(t), newMirror(t)
	var direct atomic.Int32
	forward := httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.Header.Set("X-Proxied", "yes") }}
	proxy := httptest.NewServer(&forward)
	t.Cleanup(proxy.Close)
	m.sees = func(req *http.Request) {
		if req.Header.Get("X-Proxied") == "" {
			direct.Add(1)
		}
	}
	b, err := r.spare().Fresh(within(t), Options{Overrides: state.Overrides{Locale: "fr-FR",
		Proxy:            &state.Proxy{Server: proxy.URL, Bypass: "<-loopback>"},
		PermissionPolicy: &state.PermissionPolicy{Default: state.DecisionAllow}}})
	if err != nil {
		t.Fatal(err)
	}
	if pages, err := b.Pages(within(t)); err != nil || len(pages) != 1 || pages[0].URL != blankURL {
		t.Errorf("a fresh session shows %+v, %v", pages, err)
	}
	r.open(b, m.url+"/page")
	if got := r.eval(b, m.url+"/page", `navigator.permissions.query({name: "notifications"}).then(p => p.state)`); got != "granted" {
		t.Errorf("notifications are %s", got)
	}
	for who, report := range m.reports(t, everyone...) {
		if report["languages"] != "fr-FR,fr" || report["locale"] != "fr-FR" {
			t.Errorf("%s sees %v", who, report)
		}
	}
	made, err := cdp.Call(within(t), b.driver, target.CreateBrowserContext, target.CreateBrowserContextParams{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cdp.Call(within(t), b.driver, target.CreateTarget, target.CreateTargetParams{URL: m.url + "/apart", BrowserContextID: made.BrowserContextID}); err != nil {
		t.Fatal(err)
	}
	m.reports(t, "apart")
	for _, path := range []string{"page", "frame", "worker.js", "shared.js", "service.js", "apart"} {
		// In a context that a client created, Chrome adds its own languages.
		if got := m.header(path, "Accept-Language"); got != "fr-FR,fr;q=0.9" && (path != "apart" || !strings.HasPrefix(got, "fr-FR,fr;q=0.9")) {
			t.Errorf("the first request of %s had the languages %q", path, got)
		}
	}
	if n := direct.Load(); n > 0 {
		t.Errorf("%d requests did not use the proxy", n)
	}
}

// A spare that hangs is given up within its deadline, and leaves nothing behind.
func TestHungSpare(t *testing.T) {
	r := newRig(t)
	r.aliveDeadline = time.Second
	for name, test := range map[string]struct {
		engine string
		take   func(context.Context, *Spare) error
	}{
		"fresh": {EngineChrome, func(ctx context.Context, p *Spare) error {
			_, err := p.Fresh(ctx, Options{})
			return err
		}},
		"restored": {EngineShell, func(ctx context.Context, p *Spare) error {
			_, _, err := p.Restored(ctx, state.Document{Complete: true, Datadir: state.DatadirNone}, Options{Engine: EngineShell})
			return err
		}},
	} {
		p := r.spareOf(test.engine)
		if err := p.b.process.Freeze(within(t)); err != nil {
			t.Fatal(err)
		}
		if err := test.take(within(t), p); !fault.Is(err, fault.BrowserFailed) {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-p.Done():
		default:
			t.Errorf("%s: it still runs", name)
		}
	}
}
