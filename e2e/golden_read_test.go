package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// This version opens the data directory of an earlier one, and every record and
// environment in it still works. The daemon that wrote it was killed. make test leaves
// out sessions and defaults that are as another one, and saves only three sessions again.
func TestGoldenDataDirectories(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob(filepath.Join(goldenFolder, "*.tar.zst"))
	if err != nil || len(all) == 0 {
		t.Fatalf("golden directories: %q, %v", all, err)
	}
	for _, path := range all {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".tar.zst"), func(t *testing.T) { opensGolden(t, path) })
	}
}

// golden is a daemon that runs on a copy of a golden directory.
type golden struct {
	*daemon.Daemon
	goldenRecord
	site goldenSite
}

func opensGolden(t *testing.T, path string) {
	g := golden{site: startGolden(t)}
	uid := daemon.UIDBase()
	dir := unpackGolden(t, path, uid)
	raw, err := os.ReadFile(filepath.Join(dir, goldenRecordFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &g.goldenRecord); err != nil {
		t.Fatal(err)
	}
	g.site.hooks.trust(t, dir) // before the daemon sends its queue
	g.Daemon = daemon.Start(t, daemon.Options{Dir: dir, UIDBase: uid, NoSpares: true,
		Args: []string{"--webhook-allow-private", "--max-sessions", "8", "--rescue-ttl", forever.String()}})

	g.webhooks(t)
	g.rescues(t)
	g.checks(t)
	g.records(t)
	g.snapshots(t)
	g.resumes(t)
	g.options(t)
	g.defaults(t)
	nothingLeft(t, g.Daemon)
}

// webhooks checks that the queued webhooks are sent, in order.
func (g golden) webhooks(t *testing.T) {
	var came []string
	daemon.Eventually(t, grace, "the webhooks that were queued", func() bool {
		came = nil
		for _, event := range []string{"session.deleted", "session.status_changed", "session.created"} { // newest first, as the listing
			for _, h := range g.site.hooks.of(event, "told") {
				if !slices.Contains(came, h.ID) { // else one that was answered late, and sent again
					came = append(came, h.ID)
				}
			}
		}
		return len(came) == len(g.Pending)
	})
	if diff := cmp.Diff(g.Pending, came); diff != "" {
		t.Errorf("webhooks (-queued +sent):\n%s", diff)
	}
}

// rescues checks that sessions which ran when the daemon was killed are saved and ended.
func (g golden) rescues(t *testing.T) {
	for _, id := range []string{"left", "left-light", "left-paused"} {
		s := look(t, g.Daemon, id)
		if s.Status != "terminated" || s.Outcome == nil || s.Outcome.Snapshot == nil || !s.Outcome.Snapshot.Rescue {
			t.Fatalf("%s: %+v", id, s)
		}
		g.Snapshots[id] = s.Outcome.Snapshot.ID
	}
	for id, status := range map[string]string{"first": "completed", "crashed": "error", "rescued": "terminated", "parked": "completed", "told": "completed"} {
		if s := look(t, g.Daemon, id); s.Status != status {
			t.Errorf("%s is %s, want %s", id, s.Status, status)
		}
	}
}

// checks checks that a scheduled login check is made, however late.
func (g golden) checks(t *testing.T) {
	var now struct {
		Version int64
		Last    *login.Outcome `json:"last_check"`
	}
	daemon.Eventually(t, 2*time.Minute, "a login check", func() bool {
		g.Must(t, http.StatusOK, http.MethodGet, "/v1/users/checked/default", nil).Into(t, &now)
		return now.Last != nil
	})
	if !now.Last.LoggedIn || now.Last.Error != nil {
		t.Errorf("the check found %+v", now.Last)
	}
	// The next check would start a Chrome while the test looks for none.
	g.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/checked", obj{"login_check": obj{"check_every_seconds": nil}})
}

// records checks settings, keys, messages, notes, documents and the extension.
func (g golden) records(t *testing.T) {
	wantsJSON := func(path, want string) {
		t.Helper()
		var got, wanted map[string]any
		g.Must(t, http.StatusOK, http.MethodGet, path, nil).Into(t, &got)
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		for name := range got {
			if _, asked := wanted[name]; !asked {
				delete(got, name) // a later version may add fields
			}
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	wantsJSON("/v1/users/ada", `{"user_id": "ada", "engine": "chrome", "standby": null,
		"retention": {"keep_last": 50, "keep_within_seconds": null, "keep_labelled": true},
		"login_check": {"url": "`+g.site.URL+`/account", "status": 200, "selector": null, "absent_selector": null, "text": null,
			"cookie": "login", "before_default": false, "check_every_seconds": null, "timeout_seconds": 15}}`)
	if a := g.CallAs(t, g.Key, http.MethodGet, at("first"), nil); a.Status != http.StatusOK {
		t.Errorf("the key = %d %s", a.Status, a.Body)
	}
	wants(t, g.CallAs(t, g.Key, http.MethodGet, at("parked"), nil), 404, "session_not_found")
	wants(t, g.CallAs(t, g.Revoked, http.MethodGet, at("first"), nil), 401, "unauthorized")

	var talk struct {
		Messages []struct{ Type, Content string }
	}
	g.Must(t, http.StatusOK, http.MethodGet, at("first", "/messages"), nil).Into(t, &talk)
	if len(talk.Messages) != 1 || talk.Messages[0].Type != "QUESTION" || talk.Messages[0].Content != "Which one?" {
		t.Errorf("the conversation is %+v", talk)
	}
	var note struct {
		Data struct {
			Tasks     []string `json:"open_tasks"`
			Decisions []string `json:"key_decisions"`
		} `json:"session_data"`
	}
	g.Must(t, http.StatusOK, http.MethodGet, at("first", "/notes"), nil).Into(t, &note)
	if diff := cmp.Diff([][]string{{"book"}, {"the second one"}}, [][]string{note.Data.Tasks, note.Data.Decisions}); diff != "" {
		t.Errorf("the note (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{"/snapshots/" + goldenDocumentID: goldenDocument, "/snapshots/latest": goldenDocument, "/manifest": goldenManifest} {
		got := g.Must(t, http.StatusOK, http.MethodGet, at("first", "/scopes/agent/planner", path), nil).Body
		if strings.TrimSpace(string(got)) != want {
			t.Errorf("%s is %s", path, got)
		}
	}
	var extension struct{ Name string }
	g.Must(t, http.StatusOK, http.MethodGet, "/v1/extensions/"+g.Extension, nil).Into(t, &extension)
	if extension.Name != "Golden" {
		t.Errorf("the extension is %+v", extension)
	}
}

// snapshots verifies every snapshot.
func (g golden) snapshots(t *testing.T) {
	for session, id := range g.Snapshots {
		var found struct{ OK bool }
		if g.Must(t, http.StatusOK, http.MethodPost, "/v1/snapshots/"+id+"/verify", nil).Into(t, &found); !found.OK {
			t.Errorf("the snapshot of %s is damaged: %+v", session, found)
		}
	}
}

// finds fails the test unless a session has one tab, of the site, with all stored values.
func (g golden) finds(t *testing.T, id, cdp, value string) (page string, w *wire) {
	t.Helper()
	w = dial(t, cdp)
	pages := 0
	for _, target := range w.targets() {
		if target.Type != "page" {
			continue
		}
		pages++
		if page = w.attach(target.ID); target.URL != g.site.URL+"/" {
			t.Errorf("%s has a tab of %s", id, target.URL)
		}
	}
	if pages != 1 {
		t.Fatalf("%s has %d tabs", id, pages)
	}
	w.awaitRestored(page)
	if got := w.eval(page, goldenKept); got != goldenFound(value) {
		t.Errorf("%s: the page finds %q, want %q", id, got, goldenFound(value))
	}
	return page, w
}

// resumes resumes each session, checks what it restored, and saves it again.
func (g golden) resumes(t *testing.T) {
	// Of each kind one. The snapshots of first and parked are restored as defaults.
	ids, again := []string{"partial", "light", "crashed", "left", "left-light", "left-paused"}, []string{"partial", "light", "left"}
	if storetest.Long() {
		ids = append(ids, "first", "second", "rescued", "parked")
		again = ids
	}
	for _, id := range ids {
		var a resumedAs
		g.Must(t, http.StatusOK, http.MethodPost, at(id, "/resume"), nil).Into(t, &a)
		s := look(t, g.Daemon, id)
		if a.Status != "resumed" || s.Restored == nil || s.Restored.SnapshotID != g.Snapshots[id] {
			t.Errorf("%s: %+v, restored %+v", id, a, s.Restored)
		}
		page, w := g.finds(t, id, a.CDP, id)
		if zone := w.eval(page, `Intl.DateTimeFormat().resolvedOptions().timeZone`); id == "left" && zone != "Asia/Tokyo" {
			t.Errorf("%s: the time zone is %s", id, zone)
		}
		w.close()
		if !slices.Contains(again, id) {
			finish(t, g.Daemon, id, throwAway)
		} else if e := finish(t, g.Daemon, id, toFiles); e.Snapshot == nil {
			t.Errorf("%s is not saved again: %+v", id, e)
		}
	}
}

// options checks that a resumed session keeps its options and that other options are refused.
func (g golden) options(t *testing.T) {
	resume := func(change obj) daemon.Answer {
		asked := goldenAsked(g.Extension)
		for name, value := range change {
			asked[name] = value
		}
		asked["resume"] = true
		return g.Call(t, http.MethodPost, "/v1/sessions", asked)
	}
	wants(t, resume(obj{"locale": "fr-FR"}), 422, "invalid_field")
	a := resume(nil)
	if a.Status != http.StatusCreated && a.Status != http.StatusOK {
		t.Fatalf("resume with the same options = %d %s", a.Status, a.Body)
	}
	var s struct {
		CDP    string `json:"cdp_url"`
		Agent  string `json:"agent_name"`
		Goal   string
		Labels map[string]string
	}
	a.Into(t, &s)
	if s.Agent != "writer" || s.Goal != "be read again" || s.Labels["kind"] != "golden" {
		t.Errorf("asked: %s", a.Body)
	}
	page, w := g.finds(t, "asked", s.CDP, "asked")
	// A page that is open when the extension is installed is not marked. The next one
	// is.
	w.open(page, g.site.URL+"/")
	got := w.eval(page, `(async () => [Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.language, navigator.userAgent, innerWidth + "x" + innerHeight,
		(await new Promise((ok, no) => navigator.geolocation.getCurrentPosition(ok, no))).coords.latitude, document.documentElement.dataset.golden].join(" "))()`)
	if want := "Asia/Tokyo de-DE Golden/1.0 700x500 1.5 marked"; got != want {
		t.Errorf("the page says %q, want %q", got, want)
	}
	w.close()
	finish(t, g.Daemon, "asked", throwAway)
}

// defaults restores the default of each user, and an earlier version after a rollback.
func (g golden) defaults(t *testing.T) {
	var history struct {
		History []struct {
			Version    int64
			SnapshotID string `json:"snapshot_id"`
			Available  bool
		}
	}
	g.Must(t, http.StatusOK, http.MethodGet, "/v1/users/ada/default/history", nil).Into(t, &history)
	if v := history.History; len(v) != 2 || v[0].Version != 2 || v[0].SnapshotID != g.Snapshots["second"] || v[1].SnapshotID != g.First || !v[0].Available || !v[1].Available {
		t.Errorf("the history of ada's default is %+v", v)
	}
	restores := func(user, value, snapshot string) {
		t.Helper()
		s := begin(t, g.Daemon, obj{"restore_default_environment_from_user_id": user})
		if s.Restored == nil || s.Restored.SnapshotID != snapshot {
			t.Errorf("%s: restored %+v", user, s.Restored)
		}
		_, w := g.finds(t, user, s.CDP, value)
		w.close()
		finish(t, g.Daemon, s.ID, throwAway)
	}
	if storetest.Long() {
		restores("ada", "second", g.Snapshots["second"])
	}
	g.Must(t, http.StatusOK, http.MethodPut, "/v1/users/ada/default", obj{"snapshot_id": g.First, "if_version": 2})
	restores("ada", "first", g.First)
	restores("keeper", "parked", g.Snapshots["parked"])

	bob := begin(t, g.Daemon, obj{"restore_default_environment_from_user_id": "bob", "start_url": g.site.URL + "/"})
	if bob.Restored == nil || bob.Restored.SnapshotID != g.Imported {
		t.Errorf("bob: restored %+v", bob.Restored)
	}
	w := dial(t, bob.CDP)
	page, _ := w.page()
	w.open(page, g.site.URL+"/")
	if got, want := w.eval(page, goldenKept), "login=imported imported null null"; got != want {
		t.Errorf("bob's page finds %q, want %q", got, want)
	}
	w.close()
	finish(t, g.Daemon, bob.ID, throwAway)
}
