package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// TestEveryKindCrossesEngines: everything that a site stored in full Chrome is there in
// the shell, and then in full Chrome again, in every tab and in a frame of another site.
// It is restored from a closed profile and from the copy of a frozen one. The long form
// also restores a closed profile of the shell in the shell.
func TestEveryKindCrossesEngines(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, ShellSpare: true})
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/ada", body{"engine": browser.EngineShell})
	site := apps.StartProbe(t)
	s := create(t, d, body{"user_id": "ada", "engine": browser.EngineChrome})
	before := fillProbe(t, site, s.CDP)
	shot := step{"do": "screenshot"}
	for _, step := range []struct {
		engine, mode, datadir string
	}{
		{browser.EngineChrome, "filesystem", "clean"},
		{browser.EngineShell, "memory", "live"},
		{browser.EngineShell, "filesystem", "clean"},
	} {
		if step.engine == browser.EngineShell && step.mode == "filesystem" && !storetest.Long() {
			continue
		}
		if is := see(t, d, s.ID).Engine; is != step.engine {
			t.Errorf("the session is of the %s engine, not %s", is, step.engine)
		}
		snap := save(t, d, s.ID, step.mode)
		if snap.Datadir != step.datadir || snap.Engine != step.engine {
			t.Errorf("saved %s by %s, want %s by %s", snap.Datadir, snap.Engine, step.datadir, step.engine)
		}
		if step.mode == "memory" {
			parked := create(t, d, body{"restore_from_session_id": s.ID})
			if parked.Restored.Path != restore.PathParked || parked.Engine != step.engine {
				t.Errorf("%s by %s: %s", parked.Restored.Path, parked.Engine, parked.Restored.FallbackReason)
			}
			checkTabsBy(t, chromeDP, site, parked, before)
			drive(t, playwright, parked.CDP, toTab("/me"), shot, openTab(site.URL+"/me"), await(`document.title === "me: demo"`))
			end(t, d, parked.ID, "save_snapshot_mode=none")
		}
		since := site.Log.Len()
		s = create(t, d, body{"restore_from_session_id": s.ID})
		checkTabs(t, site, s, before)
		checkRequests(t, site, since)
		checkEngines(t, d, s, step.engine, browser.EngineShell)
	}
	save(t, d, s.ID, "filesystem")
	s = create(t, d, body{"restore_from_session_id": s.ID, "engine": browser.EngineChrome})
	checkTabsBy(t, chromeDP, site, s, before)
	checkEngines(t, d, s, browser.EngineShell, browser.EngineChrome)
}

// checkEngines waits for the verification, and accepts only the warning of another
// engine.
func checkEngines(t *testing.T, d *daemon.Daemon, s created, saved, running string) {
	t.Helper()
	daemon.Eventually(t, stepDeadline, "the restore is verified", func() bool {
		return see(t, d, s.ID).Restored.Verification != restore.VerificationPending
	})
	r := see(t, d, s.ID).Restored
	if r.Verification != restore.VerificationOK {
		t.Errorf("%s to %s: %s: %+v", saved, running, r.Verification, r.Differences)
	}
	warned := false
	for _, w := range r.Warnings {
		if !strings.Contains(w, "the "+saved+" engine saved this environment") {
			t.Errorf("%s to %s: warning: %s", saved, running, w)
		}
		warned = true
	}
	if warned != (saved != running) {
		t.Errorf("%s to %s: warnings: %q", saved, running, r.Warnings)
	}
	for _, c := range r.Components {
		if c.Dropped > 0 && c.Reason.Code == "" || c.Saved != c.Restored+c.Dropped+c.Expired {
			t.Errorf("%s to %s: %+v", saved, running, c)
		}
	}
}
