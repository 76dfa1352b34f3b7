package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/importer"

	"github.com/stasisd/stasis/state/report"
)

// State goes from other tools to Stasis and back. The login works each time, and what a
// format cannot hold is named.
func TestPortable(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	s := club(t)

	// Playwright logs in. A session that starts from its storageState is logged in.
	there := clientTool{Tool: "playwright", URL: s.URL + "/join"}.run(t)
	if there.Value != memberText {
		t.Fatalf("in Playwright: %q", there.Value)
	}
	since := s.Log.Len()
	a := imports(t, d, "playwright", there.State, "user_id", "ada", "save_as_default", "true")
	if a.Snapshot.Datadir != "none" || a.Default == nil || !a.Default.Moved {
		t.Errorf("imported: %+v", a)
	}
	first := create(t, d, body{"restore_default_environment_from_user_id": "ada"})
	if n := s.Log.Len(); n != since {
		t.Errorf("the restore made %d requests to the site, want 0", n-since)
	}
	for name, want := range map[string]int{"cookies": 2, "local_storage": 1, "indexed_db": 1, "indexed_db_records": 1} {
		got := 0
		for _, line := range first.Restored.Components {
			if line.Name == name && line.Saved == line.Restored {
				got += line.Restored
			}
		}
		if got != want {
			t.Errorf("%d %s restored, want %d: %+v", got, name, want, first.Restored.Components)
		}
	}
	results := drive(t, chromeDP, first.CDP, visit(s.URL+"/"), await("window.member"))
	if got := text(t, results[1]); got != memberText {
		t.Errorf("a session from Playwright's state: %q", got)
	}
	snap := save(t, d, first.ID, "filesystem", "save_as_default=true")

	// From there to Playwright and Puppeteer, each with its own Chrome.
	out, lost := exports(t, d, snap.ID, "format=playwright&indexed_db=true")
	if got := (clientTool{Tool: "playwright", URL: s.URL + "/", State: out}).run(t); got.Value != memberText {
		t.Errorf("Playwright with Stasis's export: %q, not carried %+v", got.Value, lost)
	}
	if lostOf(lost, "indexed_db") != 0 || lostOf(lost, "tabs") != 1 {
		t.Errorf("not carried: %+v", lost)
	}
	if _, lost := exports(t, d, snap.ID, "format=playwright"); lostOf(lost, "indexed_db") != 1 {
		t.Errorf("not carried without indexed_db: %+v", lost)
	}
	out, lost = exports(t, d, snap.ID, "format=puppeteer")
	got := clientTool{Tool: "puppeteer", URL: s.URL + "/", State: out}.run(t)
	if got.Value != "ada, none, none, 3" || lostOf(lost, "local_storage") != 1 || lostOf(lost, "indexed_db") != 1 {
		t.Errorf("Puppeteer with Stasis's cookies: %q, not carried %+v", got.Value, lost)
	}
	b := imports(t, d, "puppeteer", got.State)
	if got, _ := member(t, d, s, b.Snapshot.ID, browser.EngineShell); got != "ada, none, none, 3" {
		t.Errorf("a session from Puppeteer's cookies: %q", got)
	}

	// curl with a cookie file of Stasis, and Stasis with curl's.
	jar := filepath.Join(t.TempDir(), "jar")
	answer := d.Must(t, http.StatusOK, http.MethodGet, "/v1/users/ada/default/state?format=netscape", nil)
	if err := os.WriteFile(jar, answer.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := curl(t, "-b", jar, s.URL+"/who"); got != "ada" {
		t.Errorf("curl with Stasis's cookies.txt: %q", got)
	}
	curl(t, "-c", jar+"2", "-o", os.DevNull, s.URL+"/join")
	var c importer.Answer
	sent := curl(t, "-H", "Authorization: Bearer "+daemon.Key, "--data-binary", "@"+jar+"2", d.URL+"/v1/snapshots?format=netscape")
	if err := json.Unmarshal([]byte(sent), &c); err != nil {
		t.Fatal(err)
	}
	if got, _ := member(t, d, s, c.Snapshot.ID, browser.EngineShell); got != "ada, none, none, 3" {
		t.Errorf("a session from curl's jar: %q", got)
	}
}

// An archive is imported by a daemon with other keys. If it names an older Chrome, its
// profile is used. If it names a newer one, the profile is not used, and the report says
// so. The last two are restored in the shell.
func TestArchiveElsewhere(t *testing.T) {
	t.Parallel()
	d, other := daemon.Start(t, daemon.Options{NoSpares: true}), daemon.Start(t, daemon.Options{NoSpares: true})
	s := club(t)
	c := create(t, d, body{})
	// Leave the page that makes the record: a restored tab would make it anew.
	drive(t, chromeDP, c.CDP, visit(s.URL+"/join"), await("window.member"), visit(s.URL+"/"), await("window.member"))
	snap := save(t, d, c.ID, "filesystem")
	archive := d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+snap.ID+"/archive", nil).Body

	a := imports(t, other, "stasis", archive)
	got, restored := member(t, other, s, a.Snapshot.ID, browser.EngineChrome)
	if got != memberText || restored.Datadir != "clean" || restored.Chrome.Saved != snap.Chrome {
		t.Errorf("elsewhere: %q, %+v", got, restored)
	}

	a = imports(t, other, "stasis", restamped(t, archive, "120.0.6099.1"))
	got, restored = member(t, other, s, a.Snapshot.ID, browser.EngineShell)
	if got != memberText || restored.Datadir != "clean" || withoutSpareReason(restored.FallbackReason) != "" || restored.Chrome.Saved != "120.0.6099.1" {
		t.Errorf("of an older Chrome: %q, %+v", got, restored)
	}

	a = imports(t, other, "stasis", restamped(t, archive, "999.0.1.2"))
	got, restored = member(t, other, s, a.Snapshot.ID, browser.EngineShell)
	if got != memberWithoutDatabases || restored.Datadir != "none" || !strings.Contains(restored.FallbackReason, "newer") ||
		!slices.ContainsFunc(restored.Warnings, func(w string) bool { return strings.Contains(w, "newer than the running") }) {
		t.Errorf("of a newer Chrome: %q, %+v", got, restored)
	}
	for _, line := range []struct{ name, origin string }{{"datadir", ""}, {"indexed_db", s.URL + "/"}} {
		if l := component(restored.Components, line.name, line.origin); l.Saved == 0 || l.Dropped != l.Saved || l.Restored != 0 || l.Reason.Code != report.NewerProfile {
			t.Errorf("of a newer Chrome: %s %s: %+v", line.name, line.origin, l)
		}
	}
	if l := component(restored.Components, "cookies", "127.0.0.1"); l.Restored != 2 {
		t.Errorf("of a newer Chrome: %+v", l)
	}
}

// The whole profile of a Chrome that Stasis did not start.
func TestDesktopProfile(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	s := club(t)
	dir := t.TempDir()
	clientTool{Tool: "playwright", URL: s.URL + "/join", Dir: dir}.run(t)
	if err := os.Symlink("elsewhere-1", filepath.Join(dir, "SingletonLock")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	a := imports(t, d, "datadir", zipOf(t, dir, "chromium"))
	if a.Snapshot.Chrome == "" {
		t.Errorf("no version: %+v", a.Snapshot)
	}
	reasons := ""
	for _, line := range a.Snapshot.Components {
		if line.Name == "datadir" {
			reasons += line.Reason.Text + "\n"
		}
	}
	for _, want := range []string{"Singleton*", "outside the profile", "caches"} {
		if !strings.Contains(reasons, want) {
			t.Errorf("left out, %s is missing in:\n%s", want, reasons)
		}
	}
	if got, report := member(t, d, s, a.Snapshot.ID, browser.EngineChrome); got != memberText {
		t.Errorf("a session from it: %q, %+v", got, report)
	}
	// The profile was never read over CDP. For an export, a Chrome reads it.
	out, lost := exports(t, d, a.Snapshot.ID, "format=playwright&indexed_db=true")
	if got := (clientTool{Tool: "playwright", URL: s.URL + "/", State: out}).run(t); got.Value != memberText {
		t.Errorf("exported: %q, not carried %+v", got.Value, lost)
	}
}

// What cannot be imported is refused with the name of the field, and leaves nothing.
func TestBadImports(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--max-unpack", "4096"}})
	for _, x := range []struct {
		name, query, body string
		status            int
		code, says        string
	}{
		{"wrong types", "format=playwright", `{"cookies":[],"origins":[{"origin":"https://a.example","localStorage":[{"name":"k","value":7}]}]}`, 422, "invalid_import", "$.origins[0].localStorage[0].value: must be a string"},
		{"a broken line", "format=netscape", "# Netscape HTTP Cookie File\n\na.example FALSE / FALSE 0 n v\n", 422, "invalid_import", "line 3"},
		{"no archive", "format=datadir", "hello", 422, "invalid_import", "not an archive"},
		{"our format, not ours", "format=stasis", "hello", 422, "invalid_import", "not an archive"},
		{"a way out", "format=datadir", string(zipFile(t, "../evil")), 422, "invalid_import", "clean relative path"},
		{"no profile", "format=datadir", string(zipFile(t, "a.txt")), 422, "invalid_import", "there is no profile"},
		{"too large", "format=datadir", strings.Repeat("x", 4097), 413, "too_large", "4096"},
		{"no format", "", "x", 422, "invalid_field", "format"},
		{"somebody's profile", "format=netscape&profile=Default", "x", 422, "invalid_field", "profile"},
	} {
		a := d.Send(t, daemon.Key, http.MethodPost, "/v1/snapshots?"+x.query, strings.NewReader(x.body),
			http.Header{"Content-Type": {"application/octet-stream"}})
		if a.Status != x.status || a.Code() != x.code || !strings.Contains(string(a.Body), x.says) {
			t.Errorf("%s: %d %s", x.name, a.Status, a.Body)
		}
	}
	if a := d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions", nil); strings.TrimSpace(string(a.Body)) != "[]" {
		t.Errorf("sessions: %s", a.Body)
	}
	nothingLeft(t, d)
}
