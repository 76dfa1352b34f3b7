package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// ended reports whether a session with this status has ended.
func ended(status string) bool {
	return slices.Contains([]string{"completed", "terminated", "error"}, status)
}

// wardens returns the process IDs of the daemon's wardens.
func wardens(t testing.TB, d *daemon.Daemon) []int {
	t.Helper()
	var found []int
	procs, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range procs {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		end := strings.LastIndexByte(string(raw), ')')
		fields := strings.Fields(string(raw)[end+1:])
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))); fields[1] == strconv.Itoa(d.PID()) && fields[0] != "Z" {
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		t.Fatal("the daemon has no warden")
	}
	return found
}

// crashed waits until the daemon has noticed that a session's Chrome died, and checks
// the rescue.
func crashed(t testing.TB, d *daemon.Daemon, id string) {
	t.Helper()
	daemon.Eventually(t, grace, "the session's status is error", func() bool { return look(t, d, id).Status == "error" })
	daemon.Eventually(t, grace, "the rescue of the session has an outcome", func() bool {
		s := look(t, d, id)
		if s.Rescuing != (s.Outcome == nil) {
			t.Errorf("in status %s, rescuing is %v with the outcome %+v", s.Status, s.Rescuing, s.Outcome)
		}
		return s.Outcome != nil
	})
	s := look(t, d, id)
	if s.Why != profiles.ReasonCrashed || s.CDP != "" {
		t.Errorf("reason %q, cdp_url %q", s.Reason, s.CDP)
	}
	if s.Outcome == nil || s.Outcome.Snapshot == nil || !s.Outcome.Snapshot.Rescue {
		t.Errorf("no rescue snapshot: %+v", s.Outcome)
	}
	nothingLeft(t, d)
}

// A Chrome that dies is an error of its session within seconds, and what it had on disk
// is saved. The paused one is the shell.
func TestFaultChromeCrash(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := apps.StartProbe(t)
	for _, paused := range []bool{false, true} {
		engine := browser.EngineChrome
		if paused {
			engine = browser.EngineShell
		}
		s := begin(t, d, obj{"engine": engine})
		w := dial(t, s.CDP)
		page, _ := w.page()
		w.open(page, site.URL+"/")
		if paused {
			w.close()
			d.Must(t, http.StatusOK, http.MethodPost, at(s.ID, "/pause"), nil)
		}
		kill9(t, mains(d)[0])
		if !paused {
			w.ended()
		}
		crashed(t, d, s.ID)
		wants(t, d.Call(t, http.MethodGet, at(s.ID, "/screenshot"), nil), 409, "session_not_running")
		var late ending
		d.Must(t, http.StatusOK, http.MethodDelete, at(s.ID, "?", toFiles), nil).Into(t, &late)
		if late.Deleted || late.Snapshot == nil {
			t.Errorf("a delete after the crash: %+v", late)
		}
		finish(t, d, begin(t, d, obj{"restore_from_session_id": s.ID}).ID, throwAway)
	}
}

// A renderer that dies ends its page, but not the session.
func TestFaultRendererCrash(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `localStorage.setItem("kept", "yes")`)
	w.call(page, "Inspector.enable", nil, nil)
	w.post(page, "Page.crash", obj{}) // a crashed page does not answer
	w.await(page, "Inspector.targetCrashed")
	if now := look(t, d, s.ID); now.Status != "running" {
		t.Fatalf("the session is %s: %s", now.Status, now.Reason)
	}
	var made struct {
		TargetID string `json:"targetId"`
	}
	w.call("", "Target.createTarget", obj{"url": site.URL + "/"}, &made)
	other := w.attach(made.TargetID)
	w.open(other, site.URL+"/")
	if got := w.eval(other, `localStorage.getItem("kept")`); got != "yes" {
		t.Errorf("localStorage in another tab: %q", got)
	}
	// The session can be saved while the crashed tab is open.
	finish(t, d, s.ID, toFiles)
	back := begin(t, d, obj{"restore_from_session_id": s.ID})
	w = dial(t, back.CDP)
	page, _ = w.page()
	w.open(page, site.URL+"/")
	if got := w.eval(page, `localStorage.getItem("kept")`); got != "yes" {
		t.Errorf("localStorage after the restore: %q", got)
	}
	finish(t, d, back.ID, throwAway)
}

// Chrome is killed at several points of a save. The save succeeds or fails as a whole,
// and nothing is lost: not the session, not the user's default. The log says how many
// saves succeeded. make test kills it at one point for each kind of snapshot, and the
// shell at another. The long form kills it at three points for each.
func TestFaultChromeKilledDuringASave(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	before := finish(t, d, begin(t, d, obj{"engine": browser.EngineShell}).ID, toFiles+andDefault)
	type kill struct{ engine, mode string }
	kills := map[kill][]time.Duration{{browser.EngineChrome, toFiles}: {100}, {browser.EngineShell, toFiles}: {0}, {browser.EngineChrome, toMemory}: {20}}
	if storetest.Long() {
		kills = map[kill][]time.Duration{{browser.EngineChrome, toFiles}: {0, 20, 100}, {browser.EngineShell, toFiles}: {0}, {browser.EngineChrome, toMemory}: {0, 20, 100}}
	}
	whole, failed := 0, 0
	for k, points := range kills {
		mode := k.mode
		for _, after := range points {
			s := begin(t, d, obj{"engine": k.engine})
			answers := make(chan daemon.Answer, 1)
			pid := mains(d)[0]
			go func() { answers <- d.Call(t, http.MethodDelete, at(s.ID, "?", mode), nil) }()
			<-time.After(after * time.Millisecond) // how far the save gets
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill() // it may have ended already
			}
			a := <-answers
			now := look(t, d, s.ID)
			t.Logf("%s, %s, killed after %d ms: %d %s, status %s %s", k.engine, mode, after, a.Status, a.Code(), now.Status, now.Reason)
			switch {
			case a.Status == http.StatusOK && now.Status == "error": // the crash ended the session before the save began
				failed++
				if now.Outcome == nil || now.Outcome.Snapshot == nil || !now.Outcome.Snapshot.Rescue {
					t.Errorf("killed after %d ms: no rescue snapshot: %+v", after, now)
				}
			case a.Status == http.StatusOK:
				whole++
				if now.Status != "completed" || now.Outcome == nil || now.Outcome.Snapshot == nil {
					t.Errorf("saved, and the session is %+v", now)
				}
			case a.Status >= 500 && !ended(now.Status):
				failed++
				if !now.Restarted {
					t.Errorf("the session runs although its Chrome was killed: %+v", now)
				}
				finish(t, d, s.ID, toFiles)
			case a.Status >= 400:
				failed++
				if now.Outcome == nil || now.Outcome.Snapshot == nil {
					t.Errorf("killed after %d ms: nothing was saved: %+v", after, now)
				}
			}
			finish(t, d, begin(t, d, obj{"restore_from_session_id": s.ID}).ID, throwAway)
		}
	}
	t.Logf("%d saves succeeded, %d failed", whole, failed)
	back := begin(t, d, obj{"engine": browser.EngineShell, "restore_default_environment_from_user_id": "default"})
	if back.Restored == nil || back.Restored.SnapshotID != before.Snapshot.ID {
		t.Errorf("the default restores %+v, want %s", back.Restored, before.Snapshot.ID)
	}
	finish(t, d, back.ID, throwAway)
}

// A Chrome that dies while a DELETE reads its state fails the save. The answer says that, and
// what became of the session, which continues in a new Chrome.
func TestFaultCrashDuringDelete(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.post(page, "Runtime.evaluate", obj{"expression": "for (;;) {}"}) // the reading waits for the page
	pid := mains(d)[0]
	answer := make(chan daemon.Answer, 1)
	go func() { answer <- d.Call(t, http.MethodDelete, at(s.ID, "?", toFiles), nil) }()
	w.ended() // the save has begun
	kill9(t, pid)
	a := <-answer
	wants(t, a, http.StatusBadGateway, "browser_failed")
	text := string(a.Body)
	if !strings.Contains(text, "the save failed: Chrome ") || !strings.Contains(text, "nothing was stored, and Chrome was reopened, so the session continues") || strings.Contains(text, "could not be") {
		t.Errorf("the answer is %s", text)
	}
	if now := look(t, d, s.ID); !now.Restarted || now.CDP != s.CDP {
		t.Errorf("the session: %+v", now)
	}
	finish(t, d, s.ID, toFiles)
}
