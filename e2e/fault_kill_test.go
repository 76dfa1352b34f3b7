package e2e

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// afterKill is how long processes may run after their daemon was killed.
const afterKill = 30 * time.Second

// A killed daemon leaves no process, whatever its sessions were doing. The next daemon
// rescues them and reports it.
func TestFaultDaemonKilled(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := apps.StartProbe(t)
	running := begin(t, d, obj{"session_id": "running", "timezone": "Asia/Tokyo"})
	w := dial(t, running.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `document.cookie = "lasting=yes; max-age=100000"; localStorage.setItem("kept", "yes")`)
	// Chrome writes cookies to disk after 30 s or 512 changes, whichever is first. A
	// crash leaves only what is on disk.
	w.eval(page, `for (let i = 0; i < 600; i++) document.cookie = "churn=" + i + "; max-age=100000"`)
	// Chrome writes its tabs within 2.5 s.
	daemon.Eventually(t, grace, "the tab's address in Chrome's session files", func() bool {
		return inSessionFiles(t, d, site.URL)
	})

	paused := begin(t, d, obj{"session_id": "paused", "engine": browser.EngineShell})
	d.Must(t, http.StatusOK, http.MethodPost, at(paused.ID, "/pause"), nil)
	begin(t, d, obj{"session_id": "discarded", "engine": browser.EngineShell, "on_timeout": "discard"})
	parked := begin(t, d, obj{"session_id": "parked", "engine": browser.EngineShell, "user_id": "keeper"})
	saved := finish(t, d, parked.ID, toMemory+andDefault)

	daemon.Eventually(t, grace, "four Chromes and the spare run", func() bool { return len(mains(d)) == 4+d.Spares() })
	d.Kill(t)
	nothingRuns(t, d, afterKill)
	d.Restart(t)

	for _, id := range []string{"running", "paused"} {
		s := look(t, d, id)
		if s.Status != "terminated" || s.Reason == "" || s.CDP != "" {
			t.Errorf("%s: status %q, reason %q, cdp_url %q", id, s.Status, s.Reason, s.CDP)
		}
		if s.Outcome == nil || s.Outcome.Snapshot == nil || !s.Outcome.Snapshot.Rescue {
			t.Errorf("%s: no rescue snapshot in %+v", id, s.Outcome)
		}
	}
	if s := look(t, d, "discarded"); s.Status != "terminated" || s.Outcome != nil && s.Outcome.Snapshot != nil {
		t.Errorf("a session with mode none: %+v", s)
	}
	if s := look(t, d, "parked"); s.Status != "completed" {
		t.Errorf("a session that ended before the kill: %+v", s)
	}
	nothingLeft(t, d)
	wants(t, d.Call(t, http.MethodGet, "/v1/users/default/default", nil), 404, "default_not_found")

	// Restoring the rescue brings back what was on disk, with a warning.
	again := begin(t, d, obj{"restore_from_session_id": "running"})
	if again.Restored == nil || again.Restored.Datadir != "crash" {
		t.Fatalf("restored: %+v", again.Restored)
	}
	if len(again.Restored.Warnings) == 0 {
		t.Error("no warning that data which Chrome had not written may be lost")
	}
	w = dial(t, again.CDP)
	tabs := 0
	for _, info := range w.targets() {
		if info.Type != "page" {
			continue
		}
		if tabs++; !strings.HasPrefix(info.URL, site.URL) {
			t.Errorf("a tab that the session did not have: %s", info.URL)
		}
	}
	if tabs != 1 {
		t.Errorf("%d tabs, want 1 as before the kill", tabs)
	}
	page, _ = w.page()
	w.open(page, site.URL+"/")
	if zone := w.eval(page, `Intl.DateTimeFormat().resolvedOptions().timeZone`); zone != "Asia/Tokyo" {
		t.Errorf("the time zone is %s after a kill", zone)
	}
	t.Logf("after a kill: %s", w.eval(page, `document.cookie + " " + JSON.stringify(localStorage)`))
	finish(t, d, again.ID, throwAway)
	// The parked Chrome is gone, and its files are restored instead.
	back := begin(t, d, obj{"engine": browser.EngineShell, "restore_default_environment_from_user_id": "keeper"})
	if back.Restored == nil || back.Restored.SnapshotID != saved.Snapshot.ID || !fromFiles(back.Restored.Path) || back.Restored.FallbackReason == "" {
		t.Errorf("restored: %+v", back.Restored)
	}
	finish(t, d, back.ID, throwAway)
	nothingLeft(t, d)
}

// inSessionFiles reports whether the session files of a live Chrome contain a text.
func inSessionFiles(t testing.TB, d *daemon.Daemon, text string) bool {
	t.Helper()
	return inProfiles(t, d, filepath.Join("Sessions", "Session_*"), text)
}

// inProfiles reports whether a file in a live Chrome's profile contains a text.
func inProfiles(t testing.TB, d *daemon.Daemon, name, text string) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(d.Dir, "run", "*", "profile", "*", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue // a gate of a spare
		}
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(text)) {
			return true
		}
	}
	return false
}

// The daemon is killed while it saves. The session was saved whole, or is rescued. A
// second kill changes nothing. One kill comes soon after the save of a Chrome begins, one
// as soon as the archive of a shell is in the store. The log says how many sessions were
// saved and how many were rescued. The long form has three more kills, and a second kill
// after each.
func TestFaultDaemonKilledDuringASave(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	first := finish(t, d, begin(t, d, obj{"engine": browser.EngineShell}).ID, toFiles+andDefault)
	archives := filepath.Join(d.Dir, "snapshots", "archives")
	const stored = -1 // not a time, but when the archive is in the store
	points := []time.Duration{10, stored}
	if storetest.Long() {
		points = []time.Duration{10, stored, 60, 150, 300}
	}
	saved, rescued := 0, 0
	for n, after := range points {
		asked := obj{"engine": browser.EngineChrome}
		if after == stored {
			asked = obj{"engine": browser.EngineShell, "restore_default_environment_from_user_id": "default"}
		}
		s := begin(t, d, asked)
		had := len(files(t, archives))
		go func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, d.URL+at(s.ID, "?", toFiles), nil)
			if err != nil {
				return
			}
			req.Header.Set("Authorization", "Bearer "+daemon.Key)
			if res, err := http.DefaultClient.Do(req); err == nil { // the kill cuts it off
				_ = res.Body.Close()
			}
		}()
		if after == stored {
			daemon.Eventually(t, grace, "the archive is in the store", func() bool { return len(files(t, archives)) > had })
		} else {
			<-time.After(after * time.Millisecond) // how far the save gets
		}
		d.Kill(t)
		nothingRuns(t, d, afterKill)
		d.Restart(t)
		if n == 0 || storetest.Long() {
			d.Kill(t)
			d.Restart(t)
		}
		now := look(t, d, s.ID)
		if now.Status != "terminated" && now.Status != "completed" {
			t.Errorf("killed after %d ms: status %s", after, now.Status)
		}
		if now.Outcome == nil || now.Outcome.Snapshot == nil {
			t.Errorf("killed after %d ms: nothing was saved: %+v", after, now)
			continue
		}
		if now.Outcome.Snapshot.Rescue {
			rescued++
		} else {
			saved++
		}
		if tmp := files(t, filepath.Join(d.Dir, "snapshots", "tmp")); len(tmp) > 0 {
			t.Errorf("killed after %d ms: half-written files: %q", after, tmp)
		}
		nothingLeft(t, d)
		finish(t, d, begin(t, d, obj{"restore_from_session_id": s.ID}).ID, throwAway)
	}
	t.Logf("%d sessions were saved, %d were rescued", saved, rescued)
	if back := begin(t, d, obj{"engine": browser.EngineShell, "restore_default_environment_from_user_id": "default"}); back.Restored.SnapshotID != first.Snapshot.ID {
		t.Errorf("the default is %s, want %s", back.Restored.SnapshotID, first.Snapshot.ID)
	}
}

// The wardens and the daemon are killed at once. Then only Chrome's parent-death signal
// and the next start can end Chrome.
func TestFaultEverythingKilled(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	running := begin(t, d, obj{"session_id": "running", "engine": browser.EngineShell})
	paused := begin(t, d, obj{"session_id": "paused"})
	d.Must(t, http.StatusOK, http.MethodPost, at(paused.ID, "/pause"), nil)
	for _, pid := range wardens(t, d) {
		kill9(t, pid)
	}
	d.Kill(t)
	d.Restart(t)
	nothingLeft(t, d)
	for _, id := range []string{running.ID, paused.ID} {
		if s := look(t, d, id); !ended(s.Status) {
			t.Errorf("%s is %s", id, s.Status)
		}
		finish(t, d, begin(t, d, obj{"restore_from_session_id": id}).ID, throwAway)
	}
	nothingLeft(t, d)
}

// Killing a warden is a crash of its session, and of no other.
func TestFaultWardenKilled(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	s := begin(t, d, obj{"engine": browser.EngineShell})
	kill9(t, wardens(t, d)[0])
	crashed(t, d, s.ID)
	finish(t, d, begin(t, d, obj{"restore_from_session_id": s.ID}).ID, throwAway)
	nothingLeft(t, d)
}
