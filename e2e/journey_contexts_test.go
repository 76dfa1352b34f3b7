package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// contextsSeen is the output of e2e/clients/contexts.mjs. A page is read as
// "cookie|localStorage|IndexedDB".
type contextsSeen struct {
	Before  string   // the default context
	Made    []string // two pages in each of two new contexts; if brief, one in each
	Written []string // the same pages, after both contexts were written to
	Closed  []string // a page in a third context, after the first was closed, and one in the second
	Mobile  string   // whether the window is narrow, has touch, and has an Android user agent
	Proxied string   // the text of a page behind the context's proxy
	HAR     []string // for each request for the page: status, and whether it has a body
	After   string   // the default context
	// A brief use leaves out Closed, Mobile, Proxied and HAR.
}

// Browser contexts of Playwright and Puppeteer work besides the default context, in a
// session of every restore path. They are isolated from each other on the same site.
// Each may emulate a phone, have a proxy, or be recorded. In make test, one of the two
// clients uses each session: all that contexts can do in the new session, and only two
// contexts in the restored ones, where the clients take turns. Playwright uses the new
// session of Chrome, Puppeteer that of the shell. There the shell engine restores a parked
// session and a warm one, Chrome a thawed one and a standby, and none takes the cold path.
func TestContextsChrome(t *testing.T) { t.Parallel(); contexts(t, browser.EngineChrome) }
func TestContextsShell(t *testing.T)  { t.Parallel(); contexts(t, browser.EngineShell) }

func contexts(t *testing.T, engine string) {
	t.Helper()
	both := []string{puppeteer, playwright}
	begins, first, second := both, both, both // the clients of the new session, and in turn of restored ones
	if !storetest.Long() {
		first, second = both[:1], both[1:]
		begins = second
		if engine == browser.EngineShell {
			begins = first
		}
	}
	inChrome, inShell := storetest.Long() || engine == browser.EngineChrome, storetest.Long() || engine == browser.EngineShell
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = fmt.Fprint(w, `<!doctype html><meta name=viewport content="width=device-width"><title>site</title>the site`)
	}))
	t.Cleanup(site.Close)
	const behind = "http://behind.test/"
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != behind {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = fmt.Fprint(w, "through the proxy")
	}))
	t.Cleanup(proxy.Close)
	const fresh = "fresh"
	check := func(path string, s created, has string, clients []string) {
		t.Helper()
		if s.Engine != engine {
			t.Errorf("%s: the engine is %s", path, s.Engine)
		}
		brief := !storetest.Long() && path != fresh
		for _, client := range clients {
			got := useContexts(t, obj{"tool": client, "endpoint": s.CDP, "site": site.URL + "/", "behind": behind, "proxy": proxy.URL, "brief": brief})
			want := contextsSeen{
				Before: has, Made: []string{"||", "||", "||", "||"},
				Written: []string{"who=a|a|a", "who=a|a|a", "who=b|b|b", "who=b|b|b"},
				Closed:  []string{"||", "who=b|b|b"},
				Mobile:  "true true true", Proxied: "through the proxy", After: has,
			}
			if brief {
				want = contextsSeen{Before: has, Made: []string{"||", "||"}, Written: []string{"who=a|a|a", "who=b|b|b"}, After: has}
			} else if client == playwright {
				want.HAR = []string{"200 true"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +seen):\n%s", path, client, diff)
			}
		}
	}

	d := daemon.Start(t, daemon.Options{NoSpares: !storetest.Long() || engine == browser.EngineShell, ShellSpare: engine == browser.EngineShell, Standby: 1})
	s := create(t, d, body{"user_id": "ada", "engine": engine})
	check(fresh, s, "||", begins)
	const has = "who=default|default|default"
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `new Promise((done) => {
		document.cookie = "who=default; max-age=3600"; localStorage.who = "default";
		const open = indexedDB.open("who");
		open.onsuccess = () => { // the reading has created the database
			const put = open.result.transaction("s", "readwrite");
			put.objectStore("s").put("default", "k");
			put.oncomplete = () => { open.result.close(); done(); };
		};
	})`)
	w.close()
	parked := save(t, d, s.ID, "memory", "save_as_default=true")

	s = create(t, d, body{"user_id": "ada", "engine": engine, "restore_from_environment_id": parked.ID})
	wantPath(t, s, restore.PathParked)
	if inShell {
		check(restore.PathParked, s, has, first)
	}
	if inChrome {
		d.Must(t, http.StatusOK, http.MethodPost, "/v1/sessions/"+s.ID+"/pause", nil)
		d.Must(t, http.StatusOK, http.MethodPost, "/v1/sessions/"+s.ID+"/resume", nil)
		check("thawed", see(t, d, s.ID), has, second)
	}
	if storetest.Long() { // no spare has this time zone
		end(t, d, s.ID, "save_snapshot_mode=none")
		s = create(t, d, body{"user_id": "ada", "engine": engine, "restore_from_environment_id": parked.ID, "timezone": "Asia/Tokyo"})
		wantPath(t, s, restore.PathCold)
		check(restore.PathCold, s, has, first)
	}
	end(t, d, s.ID, "save_snapshot_mode=none")

	if inShell {
		awaitReady(t, d, "spare")
		s = create(t, d, body{"user_id": "ada", "engine": engine, "restore_from_environment_id": parked.ID})
		wantPath(t, s, restore.PathWarm)
		check(restore.PathWarm, s, has, second)
		end(t, d, s.ID, "save_snapshot_mode=none")
	}
	if !inChrome {
		return
	}

	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/ada", body{"standby": 1, "engine": engine})
	awaitReady(t, d, "standby")
	s = create(t, d, body{"user_id": "ada", "engine": engine, "restore_default_environment_from_user_id": "ada"})
	wantPath(t, s, restore.PathStandby)
	check(restore.PathStandby, s, has, first)
}

// wantPath checks a session's restore path.
func wantPath(t *testing.T, s created, path string) {
	t.Helper()
	if s.Restored.Path != path {
		t.Errorf("the restore path was %s, want %s: %s", s.Restored.Path, path, s.Restored.FallbackReason)
	}
}

// awaitReady waits until the daemon keeps a Chrome of a kind ready.
func awaitReady(t *testing.T, d *daemon.Daemon, kind string) {
	t.Helper()
	line := fmt.Appendf(nil, "stasis_chromes_kept{kind=%q} 1\n", kind)
	daemon.Eventually(t, backgroundDeadline, "a "+kind+" is ready", func() bool {
		return bytes.Contains(d.Must(t, http.StatusOK, http.MethodGet, "/metrics", nil).Body, line)
	})
}

// useContexts runs e2e/clients/contexts.mjs.
func useContexts(t *testing.T, in obj) contextsSeen {
	t.Helper()
	in["timeout_ms"], in["har"] = stepDeadline.Milliseconds(), filepath.Join(t.TempDir(), "context.har")
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, "node", "clients/contexts.mjs")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(raw), &stdout, &stderr
	failed := cmd.Run()
	var out struct {
		Values contextsSeen
		Error  string
	}
	if err := json.Unmarshal([]byte(stdout.String()), &out); err != nil || failed != nil {
		t.Fatalf("%s: %v %v %s%s", in["tool"], failed, err, out.Error, stderr.String())
	}
	return out.Values
}
