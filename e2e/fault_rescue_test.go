package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// rescued is the part of a session's answer that the tests of rescues check.
type rescued struct {
	Status   string
	Reason   string
	Why      profiles.ReasonCode `json:"reason_code"`
	Rescuing bool
}

// A daemon that starts after a kill answers calls before it has rescued the sessions of
// the last one. Here the rescue cannot finish, because the store is full. These sessions
// report that they are being rescued. Others are created and ended meanwhile, and
// another kill loses nothing. In make test, root's daemon has a session of each engine,
// and an ordinary user's has one of the shell.
func TestFaultRescueBehindTheListener(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", "an ordinary user"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			o := daemon.Options{Dir: smallStore(t), NoSpares: true}
			engines := map[string]string{"full": browser.EngineChrome, "light": browser.EngineShell}
			if user != "root" {
				o = byOrdinaryUser(t, o, filepath.Join(o.Dir, "snapshots"))
				if !storetest.Long() {
					delete(engines, "full")
				}
			}
			rescueBehindTheListener(t, daemon.Start(t, o), engines)
		})
	}
}

// rescueBehindTheListener runs the test with one session of each engine. The keys are
// their IDs.
func rescueBehindTheListener(t *testing.T, d *daemon.Daemon, engines map[string]string) {
	site := apps.StartProbe(t)
	for id, engine := range engines {
		s := begin(t, d, obj{"session_id": id, "engine": engine, "user_id": id})
		w := dial(t, s.CDP)
		page, _ := w.page()
		w.open(page, site.URL+"/")
		w.eval(page, `document.cookie = "login=yes; max-age=100000"; localStorage.setItem("kept", "yes")`)
		// The rescue must contain what the checkpoint has read.
		d.Must(t, http.StatusCreated, http.MethodPost, at(id, "/snapshots"), nil)
		w.eval(page, `(async () => {
			const cache = await caches.open("heavy"), part = new Uint8Array(1 << 20);
			for (let at = 0; at < part.length; at += 65536) crypto.getRandomValues(part.subarray(at, at + 65536));
			for (let i = 0; i < 3; i++) await cache.put("/part" + i, new Response(part));
		})()`)
	}
	release := fillDisk(t, d.Dir, 1<<20)
	defer release()
	left := runDirs(t, d)
	for range 2 { // kill the daemon again during the rescue
		d.Kill(t)
		nothingRuns(t, d, afterKill)
		d.Relaunch(t)
		if n := d.Rescuing(t); n != len(engines) {
			t.Fatalf("%d sessions are being rescued, want %d", n, len(engines))
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		// The store is full at moments: a rescue that does not fit removes what it has written.
		daemon.Eventually(t, soon, path+" answers 200", func() bool { return d.CallAs(t, "", http.MethodGet, path, nil).Status == http.StatusOK })
	}
	for id := range engines {
		var s rescued
		d.Must(t, http.StatusOK, http.MethodGet, at(id), nil).Into(t, &s)
		if s.Status != "error" || !s.Rescuing || s.Why != profiles.ReasonBeingRescued {
			t.Errorf("%s: %+v", id, s)
		}
		wants(t, d.Call(t, http.MethodGet, at(id, "/screenshot"), nil), 409, "session_ending")
		// Calls that need the rescue's outcome are refused with the reason why there is
		// none yet.
		wants(t, d.Call(t, http.MethodPost, at(id, "/resume"), nil), 507, "store_full")
		wants(t, d.Call(t, http.MethodPost, "/v1/sessions", obj{"restore_from_session_id": id}), 507, "store_full")
		wants(t, d.Call(t, http.MethodDelete, at(id), nil), 507, "store_full")
		wants(t, d.Call(t, http.MethodPost, "/v1/sessions", obj{"session_id": id}), 409, "session_exists")
	}
	other := begin(t, d, obj{"user_id": "other", "engine": browser.EngineShell})
	users := map[int]int{} // user IDs of the run directories with a profile
	for _, dir := range append(left, newDirs(t, d, left)...) {
		info, err := os.Stat(filepath.Join(d.Dir, "run", dir))
		if err == nil && statUID(info) != unprivileged { // another user means the copy of a checkpoint, which is removed by now
			users[statUID(info)]++
		}
	}
	for user, n := range users {
		if n > 1 {
			t.Errorf("%d run directories of sessions to rescue have the user %d", n, user)
		}
	}
	finish(t, d, other.ID, throwAway)

	release()
	d.Rescued(t)
	for id := range engines {
		s := look(t, d, id)
		if s.Status != "terminated" || s.Outcome == nil || s.Outcome.Snapshot == nil || !s.Outcome.Snapshot.Rescue {
			t.Errorf("%s: %+v", id, s)
		}
		var list struct{ Snapshots []struct{ Rescue bool } }
		d.Must(t, http.StatusOK, http.MethodGet, at(id, "/snapshots"), nil).Into(t, &list)
		if len(list.Snapshots) != 2 || !list.Snapshots[0].Rescue || list.Snapshots[1].Rescue {
			t.Errorf("%s: the snapshots are %+v, want the checkpoint and one rescue", id, list.Snapshots)
		}
		again := begin(t, d, obj{"restore_from_session_id": id})
		w := dial(t, again.CDP)
		page, _ := w.page()
		w.open(page, site.URL+"/")
		if got := w.eval(page, `document.cookie.includes("login=yes") + localStorage.getItem("kept")`); got != "trueyes" {
			t.Errorf("%s: after the rescue: %s", id, got)
		}
		finish(t, d, again.ID, throwAway)
	}
	nothingLeft(t, d)
}

// newDirs returns the run directories of running Chromes, except the given ones.
func newDirs(t testing.TB, d *daemon.Daemon, but []string) (names []string) {
	t.Helper()
	for _, p := range d.Processes() {
		_, path, _ := strings.Cut(p.Command, "--user-data-dir="+filepath.Join(d.Dir, "run")+"/")
		name, _, _ := strings.Cut(path, "/")
		if name != "" && !slices.Contains(but, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no Chrome runs besides those of the sessions to rescue")
	}
	return names
}
