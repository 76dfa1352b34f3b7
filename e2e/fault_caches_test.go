package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
)

// keepCache stores 8 MB in a site's cache, which a restore unpacks after the other files.
const keepCache = `(async () => {
	const body = new Uint8Array(8 << 20);
	for (let at = 0; at < body.length; at += 65536) crypto.getRandomValues(body.subarray(at, at + 65536));
	await (await caches.open("c")).put("/large", new Response(body));
	return "kept";
})()`

const cacheSize = `(async () => {
	const kept = await (await caches.open("c")).match("/large");
	return kept ? String((await kept.blob()).size) : "lost";
})()`

// withCaches saves an environment with large caches.
func withCaches(t *testing.T, d *daemon.Daemon, site string) (snapshot string) {
	t.Helper()
	s := create(t, d, body{"session_id": "cached"})
	drive(t, chromeDP, s.CDP, visit(site+"/"), evaluate(keepCache))
	return save(t, d, s.ID, "filesystem").ID
}

// maxRestores is how many restores may come before one whose caches follow: the first spare of
// a daemon has no gates, and a busy machine may have none ready.
const maxRestores = 20

// cachesPending lists the sessions' folders whose caches are not in place yet.
func cachesPending(t *testing.T, d *daemon.Daemon) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.Dir, "run", "*", "profile", "Unpacking"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A daemon that is killed while the caches of a session are still being unpacked does not save
// a part of the environment: the last snapshot stays the one that is restored, whole.
func TestFaultKilledBeforeCaches(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := apps.StartProbe(t)
	withCaches(t, d, site.URL)
	killed := ""
	for range maxRestores {
		s := begin(t, d, obj{"restore_from_session_id": "cached"})
		if len(cachesPending(t, d)) > 0 {
			d.Kill(t)
			killed = s.ID
			break
		}
		finish(t, d, s.ID, throwAway)
		daemon.Eventually(t, grace, "a spare runs", func() bool { return len(mains(d)) == d.Spares() })
	}
	if killed == "" || len(cachesPending(t, d)) != 1 {
		t.Fatalf("the caches were in place before the kill of %q", killed)
	}
	d.Restart(t)
	nothingLeft(t, d)
	s := look(t, d, killed)
	if s.Status != "terminated" || s.Outcome != nil && s.Outcome.Snapshot != nil {
		t.Errorf("the killed session: %q, %+v", s.Status, s.Outcome)
	}
	again := create(t, d, body{"restore_from_session_id": "cached"})
	if got := drive(t, chromeDP, again.CDP, visit(site.URL+"/"), evaluate(cacheSize)); text(t, got[1]) != "8388608" {
		t.Errorf("the restored cache: %s", text(t, got[1]))
	}
}

// Damage in the part of an archive that follows the head ends the session, which saves
// nothing. The log names the damage.
func TestFaultDamagedCaches(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := apps.StartProbe(t)
	snapshot := withCaches(t, d, site.URL)
	archives, err := filepath.Glob(filepath.Join(d.Dir, "snapshots", "archives", "*"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%v, %v", archives, err)
	}
	body, err := os.ReadFile(archives[0])
	if err == nil {
		body[len(body)-1] ^= 1
		err = os.WriteFile(archives[0], body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	answered := ""
	for range maxRestores {
		a := d.Call(t, http.MethodPost, "/v1/sessions", obj{"restore_from_environment_id": snapshot})
		if a.Status == http.StatusCreated {
			var s liveSession
			a.Into(t, &s)
			answered = s.ID
			break
		}
		wants(t, a, http.StatusInternalServerError, "archive_damaged") // this Chrome had no gates
		daemon.Eventually(t, grace, "a spare runs", func() bool { return len(mains(d)) == d.Spares() })
	}
	if answered == "" {
		t.Fatal("no create was answered before the damage was found")
	}
	daemon.Eventually(t, grace, "the session ends", func() bool { return look(t, d, answered).CDP == "" })
	s := look(t, d, answered)
	if s.Status != "terminated" || s.Why != profiles.ReasonNotRestored {
		t.Errorf("status %q, reason %q (%s)", s.Status, s.Why, s.Reason)
	}
	nothingLeft(t, d)
	if s.Outcome != nil && s.Outcome.Snapshot != nil {
		t.Errorf("it was saved: %+v", s.Outcome)
	}
	if !strings.Contains(d.Log(), "the caches of a restored environment could not be unpacked") {
		t.Error("the log does not say why")
	}
}
