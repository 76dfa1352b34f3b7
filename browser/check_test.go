package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/logincheck"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/freeport"
	"github.com/stasisd/stasis/state"
)

// memberSite is a site that shows its members' page to clients with the cookie.
func memberSite(t *testing.T) string {
	page := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, "<!doctype html><body>"+body)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/login", page(`<form id=login>log in</form>`))
	mux.HandleFunc("/in", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: "42", Path: "/", HttpOnly: true})
		page("in")(w, nil)
	})
	mux.HandleFunc("/members", func(w http.ResponseWriter, req *http.Request) {
		if _, err := req.Cookie("sid"); err != nil {
			http.Redirect(w, req, "/login?ticket=secret", http.StatusFound)
			return
		}
		page(`<h1 class=name>Hello,  Ada</h1><p style="display:none">hidden words</p>`)(w, req)
	})
	mux.HandleFunc("/script", page(`<form id=login>log in</form><script>
		alert("a dialog holds no check up");
		setTimeout(() => { document.body.innerHTML = "<b id=late>late " + innerWidth + "</b>" }, 150)</script>`))
	mux.HandleFunc("/asks", page(`<script>fetch("/slow").then(() => { document.body.innerHTML = "<b id=late>" })</script>`))
	mux.HandleFunc("/slow", func(w http.ResponseWriter, req *http.Request) {
		// A slow site: its answer takes longer than the wait for a page to settle.
		select {
		case <-time.After(logincheck.IdleTime * 3 / 2):
			w.WriteHeader(http.StatusNoContent)
		case <-req.Context().Done():
		}
	})
	mux.HandleFunc("/away", page(`<script>location = "/login"</script>`))
	mux.HandleFunc("/denied", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/never", func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// checkCase is a check and the expected outcome. Addresses may be paths of the site.
type checkCase struct {
	name  string
	check LoginCheck
	want  LoginOutcome
}

// Each condition on a real site, met and not met, and what prevents a verdict.
func TestCheckLogin(t *testing.T) {
	r := newRig(t)
	b := r.fresh()
	site := memberSite(t)
	gone, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	const long, short = 20 * time.Second, 3 * time.Second
	const forever = time.Hour // a check that waited for its end would never return
	held := func(kinds ...string) []Condition {
		all := []Condition{}
		for _, k := range kinds {
			name, not := strings.CutPrefix(k, "!")
			all = append(all, Condition{Kind: name, Held: !not})
		}
		return all
	}
	// together runs checks in parallel, each in a separate tab, and checks that no tab
	// remains.
	together := func(name string, tests ...checkCase) {
		t.Run(name, func(t *testing.T) {
			for _, x := range tests {
				t.Run(x.name, func(t *testing.T) {
					t.Parallel()
					if x.check.URL[0] == '/' {
						x.check.URL = site + x.check.URL
					}
					if x.want.URL != "" {
						x.want.URL = site + x.want.URL
					}
					got, err := b.CheckLogin(within(t), x.check)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(x.want, got); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
				})
			}
		})
		await(t, "only the session's tab remains", func() bool { return len(r.targets(b)) == 1 })
	}
	// A different status is a verdict at once.
	together("not logged in",
		checkCase{"a redirect to the login page", LoginCheck{URL: "/members", Status: 200, Timeout: long},
			LoginOutcome{URL: "/login", Status: 302, Conditions: held("!status")}},
		checkCase{"no such element", LoginCheck{URL: "/members", Selector: ".name", Cookie: "sid", Timeout: forever},
			LoginOutcome{URL: "/login", Status: 302, Conditions: held("!selector", "!cookie")}},
		checkCase{"a form that is there", LoginCheck{URL: "/members", AbsentSelector: "#login", Text: "log in", Timeout: forever},
			LoginOutcome{URL: "/login", Status: 302, Conditions: held("!absent_selector", "text")}},
		checkCase{"a page that still asks its site", LoginCheck{URL: "/asks", Selector: "#late", Timeout: long},
			LoginOutcome{LoggedIn: true, URL: "/asks", Status: 200, Conditions: held("selector")}},
		checkCase{"a script leads away", LoginCheck{URL: "/away", Selector: "#login", Timeout: long},
			LoginOutcome{LoggedIn: true, URL: "/login", Status: 200, Conditions: held("selector")}},
	)
	r.open(b, site+"/in")
	together("logged in",
		checkCase{"all that proves it", LoginCheck{URL: "/members", Status: 200, Selector: "h1.name", AbsentSelector: "#login",
			Text: "Hello, Ada", Cookie: "sid", Timeout: long}, LoginOutcome{LoggedIn: true, URL: "/members", Status: 200,
			Conditions: held("status", "selector", "absent_selector", "text", "cookie")}},
		checkCase{"hidden text", LoginCheck{URL: "/members", Text: "hidden words", Timeout: forever},
			LoginOutcome{URL: "/members", Status: 200, Conditions: held("!text")}},
		checkCase{"a script is late", LoginCheck{URL: "/script", Selector: "#late", AbsentSelector: "#login", Text: "late 1280", Timeout: long},
			LoginOutcome{LoggedIn: true, URL: "/script", Status: 200, Conditions: held("selector", "absent_selector", "text")}},
		checkCase{"an answer without a document", LoginCheck{URL: "/denied", Status: 200, Timeout: long},
			LoginOutcome{Status: 401, Conditions: held("!status")}},
		checkCase{"Chrome's own page is not the site's", LoginCheck{URL: "/denied", AbsentSelector: "#login", Text: "HTTP ERROR", Timeout: long},
			LoginOutcome{Status: 401, Conditions: held("!absent_selector", "!text")}},
		checkCase{"no content", LoginCheck{URL: "/nothing", Status: 204, Cookie: "sid", Timeout: long},
			LoginOutcome{LoggedIn: true, Status: 204, Conditions: held("status", "cookie")}},
		checkCase{"an unreachable site", LoginCheck{URL: "http://" + gone, Status: 200, Timeout: long},
			LoginOutcome{Conditions: held("!status"), Problem: "the page could not be opened: net::ERR_CONNECTION_REFUSED"}},
		checkCase{"a site that does not answer", LoginCheck{URL: "/never", Status: 200, Timeout: short},
			LoginOutcome{Conditions: held("!status"), Problem: "the page did not answer in time"}},
		checkCase{"no selector", LoginCheck{URL: "/members", Selector: "h1[", Timeout: long},
			LoginOutcome{URL: "/members", Status: 200, Conditions: held("!selector"), Problem: "selector is not a valid CSS selector"}},
	)
	// The session's own tabs were not changed.
	if got := r.eval(b, site+"/in", "history.length + document.visibilityState"); got != "1visible" {
		t.Errorf("the tab in front: %s", got)
	}
}

// A dead Chrome gives an error, and the caller may cancel.
func TestCheckLoginFails(t *testing.T) {
	r := newRigOfEither(t)
	b := r.fresh()
	site := memberSite(t)
	ctx, cancel := context.WithCancel(within(t))
	asked := make(chan error)
	go func() {
		_, err := b.CheckLogin(ctx, LoginCheck{URL: site + "/never", Status: 200, Timeout: time.Minute})
		asked <- err
	}()
	await(t, "the check has begun", func() bool { return len(r.targets(b)) == 2 })
	cancel()
	if err := <-asked; fault.CodeOf(err) != fault.BrowserFailed {
		t.Errorf("cancelled: %v", err)
	}
	await(t, "the hidden tab has closed", func() bool { return len(r.targets(b)) == 1 })
	if err := b.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CheckLogin(within(t), LoginCheck{URL: site, Status: 200, Timeout: time.Minute}); fault.CodeOf(err) != fault.BrowserFailed {
		t.Errorf("with a dead Chrome: %v", err)
	}
}

// targets returns all targets of Chrome, including hidden ones.
func (r *rig) targets(b *Browser) []*target.Info {
	r.t.Helper()
	all, err := cdp.Call(within(r.t), b.driver, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		r.t.Fatal(err)
	}
	return all.TargetInfos
}

// The check's page has the same overrides as the session's own pages, so a site that ties
// a login to the user agent recognises it.
func TestCheckLoginAsTheSession(t *testing.T) {
	r := newRig(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><p>%s, %s, <script>document.write(navigator.userAgent + ", " + innerWidth)</script>`,
			req.Header.Get("X-Extra"), req.Header.Get("User-Agent"))
	}))
	t.Cleanup(server.Close)
	b, err := r.Fresh(within(t), r.dir(), Options{Overrides: state.Overrides{UserAgent: "Own/1", ExtraHeaders: map[string]string{"X-Extra": "one"},
		Viewport: &state.Viewport{Width: 700, Height: 500, DeviceScaleFactor: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	got, err := b.CheckLogin(within(t), LoginCheck{URL: server.URL, Text: "one, Own/1, Own/1, 700", Timeout: waitTimeout})
	if err != nil || !got.LoggedIn {
		t.Errorf("%+v, %v", got, err)
	}
}
