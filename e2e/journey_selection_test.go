package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/library"
	sessionsave "github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// One of two sites is restored. The other's login is not in the browser, and the report
// says so. The parked Chrome, which has both, is not used.
func TestSelection(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	t.Cleanup(site.Close)
	other := strings.Replace(site.URL, "127.0.0.1", "localhost", 1)
	s := create(t, d, body{"user_id": "ada"})
	const login = `document.cookie = "login=" + location.hostname; localStorage.setItem("token", location.hostname); "1"`
	const who = `[document.cookie, localStorage.getItem("token")].join("|")`
	drive(t, chromeDP, s.CDP, visit(site.URL+"/"), evaluate(login), openTab("about:blank"), toTab("about:blank"), visit(other+"/"), evaluate(login))
	snap := save(t, d, s.ID, "memory")

	r := create(t, d, body{"restore_from_session_id": s.ID, "origins": body{"include": []string{site.URL}}})
	if !fromFiles(r.Restored.Path) || !strings.Contains(r.Restored.FallbackReason, "origins") {
		t.Errorf("the restore path was %s: %s", r.Restored.Path, r.Restored.FallbackReason)
	}
	left := map[string]int{}
	for _, c := range r.Restored.Components {
		if c.Reason.Code == report.LeftOut && c.Origin != "" {
			left[c.Name+" "+strings.NewReplacer(other, "other", site.URL, "site").Replace(c.Origin)] += c.Dropped
		}
	}
	if diff := cmp.Diff(map[string]int{"cookies localhost": 1, "local_storage other/": 1, "tabs other": 1, "tab_history site": 1}, left); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	got := drive(t, chromeDP, r.CDP, visit(site.URL+"/"), evaluate(who), visit(other+"/"), evaluate(who))
	if in, out := text(t, got[1]), text(t, got[3]); in != "login=127.0.0.1|127.0.0.1" || out != "|" {
		t.Errorf("the selected site finds %q, the other %q", in, out)
	}

	// The difference of the two snapshots shows what the second lacks.
	later := save(t, d, r.ID, "filesystem")
	if raw := exported(t, d, saveOnly(t, d, other, site.URL)); strings.Contains(raw, other) || strings.Contains(raw, `"localhost"`) || !strings.Contains(raw, "127.0.0.1") {
		t.Errorf("saved with a selection: %s", raw)
	}
	var diff library.Diff
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+snap.ID+"/diff/"+later.ID, nil).Into(t, &diff)
	removed := map[string][]string{}
	for _, c := range diff.Changes {
		if len(c.Removed) > 0 && (c.Name == state.ComponentCookies || c.Name == state.ComponentLocalStorage) {
			removed[c.Name+" "+strings.Replace(c.Origin, other, "other", 1)] = c.Removed
		}
	}
	if diff := cmp.Diff(map[string][]string{"cookies localhost": {"login"}, "local_storage other/": {"token"}}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}

// saveOnly saves a session of the shell that has visited two sites without the first one, and returns
// the snapshot's ID.
func saveOnly(t *testing.T, d *daemon.Daemon, without, with string) string {
	t.Helper()
	s := create(t, d, body{"user_id": "ada", "engine": browser.EngineShell})
	const login = `document.cookie = "login=" + location.hostname; localStorage.setItem("token", location.hostname); "1"`
	drive(t, chromeDP, s.CDP, visit(with+"/"), evaluate(login), openTab("about:blank"), toTab("about:blank"), visit(without+"/"), evaluate(login))
	var e sessionsave.EndAnswer
	d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions/"+s.ID+"?save_snapshot_mode=filesystem&origins_exclude=localhost", nil).Into(t, &e)
	if len(e.LeftOut) == 0 || e.Snapshot == nil {
		t.Fatalf("%+v", e)
	}
	return e.Snapshot.ID
}

// exported returns a snapshot's state document.
func exported(t *testing.T, d *daemon.Daemon, id string) string {
	t.Helper()
	_, got := plain(t, d, http.MethodGet, "/v1/snapshots/"+id+"/state", nil)
	return got
}
