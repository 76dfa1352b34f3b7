package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/apps/webapp"
	"github.com/stasisd/stasis/e2e/apps/weblog"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// webApp is a real application, with the steps that log in and prove a login.
type webApp struct {
	name  string
	url   string // of its front page, without a trailing slash
	log   *weblog.Log
	login []step
	// proof ends with an authenticated request of the page. Its answer must contain what
	// only the account can read.
	proof  []step
	secret string
	isForm func(weblog.Request) bool // whether a request is that of the login form
}

func wiki(t testing.TB) webApp {
	app := apps.Start(t, webapp.StartDokuWiki)
	return webApp{name: "dokuwiki", url: app.URL, log: app.Log,
		login: []step{
			visit(app.URL + "/doku.php?id=start&do=login"),
			fill(`#dw__login input[name="u"]`, app.User), fill(`#dw__login input[name="p"]`, app.Password),
			click(`#dw__login button[type="submit"]`),
			await(`document.body.innerText.includes("Members only")`),
		},
		proof: []step{
			await(`document.body.innerText.includes("Members only") && document.body.innerText.includes("Ada Lovelace")`),
			evaluate(`fetch("/doku.php?id=start&do=export_raw").then((r) => r.text())`),
		},
		secret: "You are in.",
		isForm: func(r weblog.Request) bool { return r.Method == http.MethodPost && r.Path == "/doku.php" },
	}
}

func nodeRED(t testing.TB) webApp {
	app := apps.Start(t, webapp.StartNodeRED)
	const in = `!!document.querySelector("#red-ui-header-button-user") && !document.querySelector("#node-dialog-login-username")`
	return webApp{name: "node-red", url: app.URL, log: app.Log,
		login: []step{
			visit(app.URL + "/"),
			// The field exists, hidden, before the dialog opens. The focus does not show
			// that: the rest of the page may take it while it loads.
			await(`document.querySelector("#node-dialog-login-username")?.checkVisibility()`),
			fill("#node-dialog-login-username", app.User), fill("#node-dialog-login-password", app.Password),
			click("#node-dialog-login-submit"),
			await(in),
		},
		proof: []step{
			await(in),
			evaluate(`fetch("/settings", {headers: {Authorization: "Bearer " + JSON.parse(localStorage["auth-tokens"]).access_token}})
				.then((r) => r.text())`),
		},
		secret: `"username":"` + app.User + `"`,
		isForm: func(r weblog.Request) bool { return r.Method == http.MethodPost && r.Path == "/auth/token" },
	}
}

// logIn logs in through the real form.
func (w webApp) logIn(t testing.TB, client, cdpURL string) {
	t.Helper()
	drive(t, client, cdpURL, w.login...)
}

// prove fails the test unless the restored tab shows the account's page, its request is
// answered for the account, and there was no login request since.
func (w webApp) prove(t testing.TB, client, cdpURL string, since int) {
	t.Helper()
	results := drive(t, client, cdpURL, w.proof...)
	if got := text(t, results[len(results)-1]); !strings.Contains(got, w.secret) {
		t.Errorf("%s: the authenticated request was answered with %.200q", w.name, got)
	}
	for _, r := range w.log.Since(since) {
		if w.isForm(r) {
			t.Errorf("%s: there was another login request", w.name)
		}
	}
}

// saved is an environment that was logged in once.
type saved struct {
	app           webApp
	client, mode  string
	engine        string
	session, user string
}

// TestStillLoggedInAfterRestart is the main use case: log in once through the real form,
// save, restart the daemon, restore, still logged in. The short form has both engines, both
// JavaScript clients, each application, both modes, by session ID and by default; TestParkedThenCold and
// TestStory do it with chromedp. The long form tries each client with each application, and
// restores each environment both ways.
func TestStillLoggedInAfterRestart(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	var all []*saved
	for i, app := range []webApp{wiki(t), nodeRED(t)} {
		for j, client := range []string{puppeteer, playwright, chromeDP} {
			if !storetest.Long() && i != j {
				continue // DokuWiki with Puppeteer, Node-RED with Playwright
			}
			engine := browser.EngineChrome
			mode := []string{"filesystem", "memory"}[(i+j)%2] // each client and each application gets both modes
			if !storetest.Long() {
				mode, engine = []string{"filesystem", "memory"}[i], []string{browser.EngineChrome, browser.EngineShell}[i]
			}
			all = append(all, &saved{app: app, client: client, mode: mode, engine: engine, user: app.name + "/" + client})
		}
	}
	each := func(name string, do func(*testing.T, *saved)) {
		t.Run(name, func(t *testing.T) {
			for _, x := range all {
				t.Run(x.user+"/"+x.mode, func(t *testing.T) {
					t.Parallel()
					do(t, x)
				})
			}
		})
	}
	each("save", func(t *testing.T, x *saved) {
		s := create(t, d, body{"user_id": x.user, "engine": x.engine})
		x.session = s.ID
		x.app.logIn(t, x.client, s.CDP)
		save(t, d, s.ID, x.mode, "save_as_default=true")
	})
	restart(t, d)
	since := map[string]int{}
	for _, x := range all {
		since[x.app.name] = x.app.log.Len()
	}
	each("restore", func(t *testing.T, x *saved) {
		if storetest.Long() || x.client != playwright {
			x.restore(t, d, body{"restore_from_session_id": x.session, "engine": x.engine}, since[x.app.name])
		}
		if storetest.Long() || x.client == playwright {
			x.restore(t, d, body{"restore_default_environment_from_user_id": x.user, "engine": x.engine}, since[x.app.name])
		}
	})
}

// restore restores the environment from its files and proves the login.
func (x *saved) restore(t *testing.T, d *daemon.Daemon, from body, since int) {
	t.Helper()
	s := create(t, d, from)
	defer end(t, d, s.ID, "")
	if s.UserID != x.user {
		t.Errorf("the session's user is %q, want the environment's user", s.UserID)
	}
	r := s.Restored
	if r == nil || !fromFiles(r.Path) || r.RequestedMode != x.mode || r.Mode != "filesystem" {
		t.Fatalf("restored: %+v", r)
	}
	if wantReason := x.mode == "memory"; (withoutSpareReason(r.FallbackReason) != "") != wantReason {
		t.Errorf("fallback_reason: %q", r.FallbackReason)
	}
	x.app.prove(t, x.client, s.CDP, since)
}

// A memory snapshot is restored as the same parked Chrome once. After that it is
// restored from its files, and the report says why.
func TestParkedThenCold(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: append(shellUnlessLong(), "--parked", "1")})
	app := wiki(t)
	s := create(t, d, body{"user_id": "ada"})
	app.logIn(t, chromeDP, s.CDP)
	snap := save(t, d, s.ID, "memory", "save_as_default=true")
	since := app.log.Len()
	again := func(client string, from body) restore.Report {
		t.Helper()
		r := create(t, d, from)
		defer end(t, d, r.ID, "")
		app.prove(t, client, r.CDP, since)
		return *r.Restored
	}
	byDefault := body{"restore_default_environment_from_user_id": "ada"}

	fromFilesOnly := create(t, d, body{"restore_from_session_id": s.ID, "enable_memory_snapshot": false})
	app.prove(t, chromeDP, fromFilesOnly.CDP, since)
	if files := fromFilesOnly.Restored; !fromFiles(files.Path) || files.RequestedMode != "filesystem" || withoutSpareReason(files.FallbackReason) != "" {
		t.Errorf("restored from files as requested: %+v", files)
	}
	parked := again(puppeteer, byDefault)
	if parked.Path != "parked" || parked.Mode != "memory" || parked.FallbackReason != "" || parked.SnapshotID != snap.ID {
		t.Errorf("from the parked Chrome: %+v", parked)
	}
	later := create(t, d, byDefault)
	app.prove(t, chromeDP, later.CDP, since)
	if cold := later.Restored; !fromFiles(cold.Path) || cold.Mode != "filesystem" || !strings.Contains(cold.FallbackReason, "served a restore") {
		t.Errorf("after the parked Chrome was used: %+v", cold)
	}

	// Only one Chrome can be parked, so a later one replaces the first.
	ids := []string{fromFilesOnly.ID, later.ID}
	for _, id := range ids {
		save(t, d, id, "memory")
	}
	evicted := again(chromeDP, body{"restore_from_session_id": ids[0]})
	if !fromFiles(evicted.Path) || !strings.Contains(evicted.FallbackReason, "evicted") {
		t.Errorf("after the parked Chrome was evicted: %+v", evicted)
	}
	kept := again(chromeDP, body{"restore_from_environment_id": ids[1]})
	if kept.Path != "parked" {
		t.Errorf("the one that was kept: %+v", kept)
	}
}

// fromFiles reports whether a restore was made from the archive, with or without a
// spare.
func fromFiles(path string) bool { return path == restore.PathWarm || path == restore.PathCold }

// withoutSpareReason removes from a report's reason what depends on the machine's speed: whether a
// spare was ready.
func withoutSpareReason(reason string) string {
	return strings.TrimSuffix(strings.TrimSuffix(reason, "no spare Chrome was ready"), "; ")
}

// Without the environment the applications show their login forms. So the logins of the
// other tests come from the environment.
func aStrangerIsNotLoggedIn(t *testing.T, d *daemon.Daemon) {
	app := wiki(t)
	s := create(t, d, body{})
	got := drive(t, chromeDP, s.CDP, app.login[0], app.proof[1])
	if page := text(t, got[1]); strings.Contains(page, app.secret) {
		t.Errorf("without the environment the page is %q", page)
	}
}
