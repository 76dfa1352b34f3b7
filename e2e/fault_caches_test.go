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

// keepCache stores 64 MB in a site's cache, which a restore unpacks after the other files.
const keepCache = `(async () => {
	const megabyte = new Uint8Array(1 << 20);
	for (let at = 0; at < megabyte.length; at += 65536) crypto.getRandomValues(megabyte.subarray(at, at + 65536));
	await (await caches.open("c")).put("/large", new Response(new Blob(Array(64).fill(megabyte))));
	return "kept";
})()`

// cacheBytes is what cacheSize returns then.
const cacheBytes = "67108864"

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
// a daemon has no gates, and the caches may be in place before the test looks.
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

// A daemon is killed while a session's caches are being unpacked. It saves no part of that
// environment. The last snapshot can still be restored whole.
func TestFaultKilledBeforeCaches(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := apps.StartProbe(t)
	withCaches(t, d, site.URL)
	killed := ""
	for range maxRestores {
		sparesReady(t, d, d.Spares())
		s := begin(t, d, obj{"restore_from_session_id": "cached"})
		if len(cachesPending(t, d)) == 0 {
			finish(t, d, s.ID, throwAway)
			continue
		}
		d.Kill(t)
		pending := len(cachesPending(t, d)) > 0
		d.Restart(t)
		if pending {
			killed = s.ID
			break
		}
	}
	if killed == "" {
		t.Fatal("the caches were in place before each kill")
	}
	nothingLeft(t, d)
	s := look(t, d, killed)
	if s.Status != "terminated" || s.Why != profiles.ReasonNotRescued || s.Outcome != nil && s.Outcome.Snapshot != nil {
		t.Errorf("the killed session: status %q, reason %q, %+v", s.Status, s.Why, s.Outcome)
	}
	again := create(t, d, body{"restore_from_session_id": "cached"})
	if got := drive(t, chromeDP, again.CDP, visit(site.URL+"/"), evaluate(cacheSize)); text(t, got[1]) != cacheBytes {
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
		sparesReady(t, d, d.Spares())
		a := d.Call(t, http.MethodPost, "/v1/sessions", obj{"restore_from_environment_id": snapshot})
		if a.Status == http.StatusCreated {
			var s liveSession
			a.Into(t, &s)
			answered = s.ID
			break
		}
		wants(t, a, http.StatusInternalServerError, "archive_damaged") // this Chrome had no gates
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
	for path, body := range map[string]obj{at(answered, "/resume"): {}, "/v1/sessions": {"restore_from_session_id": answered}} {
		a := d.Call(t, http.MethodPost, path, body)
		wants(t, a, http.StatusConflict, "no_snapshot")
		if text := string(a.Body); !strings.Contains(text, "it was restored from snapshot "+snapshot) || strings.Contains(text, "if_missing") {
			t.Errorf("%s answers %s", path, text)
		}
	}
	if !strings.Contains(d.Log(), "the caches of a restored environment could not be unpacked") {
		t.Error("the log does not say why")
	}
}

// A save, a checkpoint and a pause right after a restore wait until the caches are in place, and
// have them.
func TestSaveRightAfterRestore(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := apps.StartProbe(t)
	withCaches(t, d, site.URL)
	pending := 0
	for _, then := range []string{"filesystem", "checkpoint", "memory"} {
		for range maxRestores {
			sparesReady(t, d, d.Spares())
			s := begin(t, d, obj{"restore_from_session_id": "cached"})
			waits := len(cachesPending(t, d)) > 0
			id := ""
			if then == "checkpoint" {
				id = checkpoint(t, d, s.ID, body{}).Snapshot.ID
				finish(t, d, s.ID, throwAway)
			} else {
				id = finish(t, d, s.ID, "save_snapshot_mode="+then).Snapshot.ID
			}
			again := create(t, d, body{"restore_from_environment_id": id, "enable_memory_snapshot": false})
			got := drive(t, chromeDP, again.CDP, visit(site.URL+"/"), evaluate(cacheSize))
			if text(t, got[1]) != cacheBytes {
				t.Errorf("%s: the restored cache: %s", then, text(t, got[1]))
			}
			finish(t, d, again.ID, throwAway)
			if waits {
				pending++
				break
			}
		}
	}
	if pending != 3 {
		t.Errorf("only %d of 3 saves came before the caches", pending)
	}
}
