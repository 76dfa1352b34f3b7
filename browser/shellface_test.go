package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// self is what a page or a worker sees of its browser.
const self = `({agent: navigator.userAgent, languages: navigator.languages, platform: navigator.platform, cores: navigator.hardwareConcurrency,
	brands: navigator.userAgentData.brands, webdriver: navigator.webdriver})`

// selves collects self from the page and from all kinds of workers, each of which sends a
// request.
const selves = `(async () => {
	const received = (on, at = on) => new Promise(done => { at.onmessage = e => done(e.data); });
	const reported = {page: ` + self + `, screen: [screen.width, screen.height, innerWidth, innerHeight, devicePixelRatio],
		mouse: matchMedia("(hover: hover) and (pointer: fine)").matches,
		hints: await navigator.userAgentData.getHighEntropyValues(["architecture", "bitness", "model", "platformVersion", "fullVersionList", "formFactors", "wow64"])};
	await fetch("/sub");
	reported.worker = await received(new Worker("/worker.js"));
	reported.shared = await received(new SharedWorker("/shared.js").port);
	const registered = await navigator.serviceWorker.register("/service.js");
	await navigator.serviceWorker.ready;
	const answer = received(navigator.serviceWorker);
	registered.active.postMessage(1);
	reported.service = await answer;
	return JSON.stringify(reported);
})()`

// A site sees the same browser with either engine: in its pages and workers of every
// kind, and in the headers of their requests.
func TestEnginesLookTheSame(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		asked[req.URL.Path] = req.Header
		mu.Unlock()
		w.Header().Set("Accept-CH", "Sec-CH-UA-Full-Version-List, Sec-CH-UA-Arch, Sec-CH-UA-Bitness, Sec-CH-UA-Model, Sec-CH-UA-Platform-Version, Sec-CH-UA-Form-Factors")
		switch req.URL.Path {
		case "/worker.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(w, `fetch("/by-worker").then(() => postMessage(`+self+`))`)
		case "/shared.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(w, `onconnect = e => fetch("/by-shared").then(() => e.ports[0].postMessage(`+self+`))`)
		case "/service.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(w, `onactivate = e => e.waitUntil(clients.claim()); onmessage = e => fetch("/by-service").then(() => e.source.postMessage(`+self+`))`)
		default:
			w.Header().Set("Content-Type", "text/html")
		}
	}))
	t.Cleanup(server.Close)
	r := newRig(t)
	reported, headers := map[string]any{}, map[string]map[string]http.Header{}
	for _, engine := range []string{EngineChrome, EngineShell} {
		b, err := r.Fresh(within(t), r.dir(), Options{Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		r.ends(b)
		r.open(b, server.URL+"/")
		r.open(b, server.URL+"/page")
		var raw string
		if err := json.Unmarshal([]byte(`"`+r.eval(b, server.URL+"/page", selves)+`"`), &raw); err != nil {
			t.Fatal(err)
		}
		var is map[string]any
		if err := json.Unmarshal([]byte(raw), &is); err != nil {
			t.Fatal(err)
		}
		reported[engine] = is
		mu.Lock()
		headers[engine] = maps.Clone(asked)
		mu.Unlock()
		if got, want := b.UserAgent(), is["page"].(map[string]any)["agent"]; got != want {
			t.Errorf("%s: Browser.UserAgent is %s, its pages see %s", engine, got, want)
		}
		if err := b.Kill(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if reported[EngineChrome].(map[string]any)["mouse"] != true {
		t.Error("sites see a browser without a mouse")
	}
	if diff := cmp.Diff(reported[EngineChrome], reported[EngineShell]); diff != "" {
		t.Errorf("what pages and workers see (-chrome +shell):\n%s", diff)
	}
	for _, path := range slices.Sorted(maps.Keys(headers[EngineShell])) {
		if diff := cmp.Diff(headers[EngineChrome][path], headers[EngineShell][path]); diff != "" {
			t.Errorf("%s (-chrome +shell):\n%s", path, diff)
		}
	}
}

// The policy applies in the shell, and again after a client that changed permissions has
// disconnected. Passkeys work, a login check's tab is hidden, and pages are closed with
// their handlers.
func TestShellKeepsPolicyAndPasskeys(t *testing.T) {
	t.Parallel()
	r, s, yes := newRig(t), newSite(t, nil), true
	b, err := r.Fresh(within(t), r.dir(), Options{Engine: EngineShell, Passkeys: &yes, Overrides: state.Overrides{
		Geolocation: &state.Geolocation{Latitude: 1, Longitude: 2, Accuracy: 3},
		PermissionPolicy: &state.PermissionPolicy{Default: state.DecisionDeny, Rules: []state.PermissionRule{
			{Permission: "notifications", Origin: "*", Decision: state.DecisionAllow},
			{Permission: "camera", Origin: s.url, Decision: state.DecisionAllow},
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	at := s.url + "/page"
	r.open(b, at)
	want := map[string]string{"geolocation": "granted", "notifications": "granted", "camera": "granted", "microphone": "denied", "midi": "denied"}
	r.checkMay(b, at, want)
	c, leave := r.client(b)
	c.call(t, `{"id":1,"method":"Browser.setPermission","params":{"permission":{"name":"microphone"},"setting":"granted"}}`)
	leave()
	want["microphone"] = "granted"
	r.checkMay(b, at, want)
	outcome, err := b.CheckLogin(within(t), LoginCheck{URL: at, Status: 200, Timeout: waitTimeout})
	if err != nil || !outcome.LoggedIn {
		t.Errorf("%+v, %v", outcome, err)
	}
	// Pages close as in full Chrome: their handlers run, without a confirmation dialog.
	r.eval(b, at, `addEventListener("pagehide", () => { document.cookie = "left=1; max-age=3600"; localStorage.left = 1; });
		addEventListener("beforeunload", (e) => e.preventDefault()); 1`)
	r.touch(b, at)
	doc := r.save(b)
	left, err := inspect.Read(within(t), filepath.Join(b.dir.Profile(), "Default"))
	if err != nil || len(left.Cookies) != 1 || len(left.LocalStorage.Areas) != 1 {
		t.Errorf("written by the handlers: %+v %+v, %v", left.Cookies, left.LocalStorage.Areas, err)
	}
	if len(doc.Tabs) != 1 || !doc.Passkeys.Enabled {
		t.Errorf("tabs: %+v, passkeys: %+v", doc.Tabs, doc.Passkeys)
	}
}
