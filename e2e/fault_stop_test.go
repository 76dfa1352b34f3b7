package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
)

// A daemon that is stopped saves its sessions, closes the clients' connections and
// leaves no process. The next daemon restores the sessions.
func TestFaultStop(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := apps.StartProbe(t)
	running := begin(t, d, obj{"session_id": "running"})
	w := dial(t, running.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `document.cookie = "login=yes"; sessionStorage.setItem("tab", "yes")`)
	paused := begin(t, d, obj{"session_id": "paused", "engine": browser.EngineShell})
	d.Must(t, http.StatusOK, http.MethodPost, at(paused.ID, "/pause"), nil)
	begin(t, d, obj{"session_id": "discarded", "engine": browser.EngineShell, "on_timeout": "discard"})
	finish(t, d, begin(t, d, obj{"session_id": "parked", "engine": browser.EngineShell}).ID, toMemory)

	d.Stop(t)
	if code := w.ended(); code != 4001 {
		t.Errorf("the client's socket closed with %d, want 4001", code)
	}
	if left := d.Processes(); len(left) > 0 {
		t.Errorf("processes: %+v", left)
	}
	if left := runDirs(t, d); len(left) > 0 {
		t.Errorf("run directories: %q", left)
	}
	d.Restart(t)
	for _, id := range []string{"running", "paused"} {
		s := look(t, d, id)
		if s.Status != "terminated" || s.Why != profiles.ReasonShutdown || s.Outcome == nil || s.Outcome.Snapshot == nil || !s.Outcome.Snapshot.Rescue {
			t.Errorf("%s: %+v %+v", id, s, s.Outcome)
		}
	}
	if s := look(t, d, "discarded"); s.Status != "terminated" || s.Outcome != nil && s.Outcome.Snapshot != nil {
		t.Errorf("a session with mode none: %+v", s)
	}
	back := begin(t, d, obj{"restore_from_session_id": "running"})
	if back.Restored == nil || back.Restored.Datadir != "clean" {
		t.Fatalf("restored: %+v", back.Restored)
	}
	w = dial(t, back.CDP)
	page, _ = w.page()
	w.awaitRestored(page)
	if got := w.eval(page, `document.cookie + sessionStorage.getItem("tab")`); got != "login=yesyes" {
		t.Errorf("after the stop: %q", got)
	}
	finish(t, d, back.ID, throwAway)
}

// stuck makes a page that cannot be left: it has a beforeunload dialog, and its script
// never ends.
func stuck(w *wire, page, url string) {
	w.open(page, url)
	w.eval(page, `localStorage.setItem("kept", "yes"); document.cookie = "login=yes; max-age=100000";
		addEventListener("beforeunload", e => { e.preventDefault(); e.returnValue = "stay" }); 1`)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		w.call(page, "Input.dispatchMouseEvent", obj{"type": kind, "x": 20, "y": 20, "button": "left", "clickCount": 1}, nil)
	}
}

// A second signal ends the daemon at once, during a save. The next start rescues what
// was not saved.
func TestFaultStopAtOnce(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{})
	w := dial(t, s.CDP)
	page, _ := w.page()
	stuck(w, page, site.URL+"/")
	w.post(page, "Runtime.evaluate", obj{"expression": "for (;;) {}"})
	signal := func() {
		if err := syscall.Kill(d.PID(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	signal()
	w.ended() // the connection closes when the save has begun
	signal()
	ctx, cancel := context.WithTimeout(t.Context(), grace)
	defer cancel()
	err := d.Wait(ctx)
	if ctx.Err() != nil {
		t.Fatalf("a second signal did not end the daemon")
	}
	t.Logf("the daemon ended with %v", err)
	nothingRuns(t, d, afterKill)
	d.Restart(t)
	if !strings.Contains(d.Log(), "a session was rescued") {
		t.Error("the next daemon rescued no session: the stop was not at once")
	}
	now := look(t, d, s.ID)
	if now.Status != "terminated" || now.Outcome == nil || now.Outcome.Snapshot == nil {
		t.Errorf("the session: %+v", now)
	}
	nothingLeft(t, d)
}

// A page that blocks unloading does not delay the end for long, and its state is saved.
// All sessions end at the same time, because each end waits for its page. A script that
// never ends uses a whole core, so it starts last, and one page waits for a synchronous
// request instead.
func TestFaultPageThatBlocksUnloading(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := apps.StartProbe(t)
	held := slowSite(t).URL + "/held/page"
	cases := []struct{ name, script, mode string }{
		{"asks back", `1`, toFiles},
		{"endless request", `const r = new XMLHttpRequest(); r.open("GET", "` + held + `", false); r.send()`, toFiles},
		{"endless unload, an open dialog", `addEventListener("pagehide", () => { for (;;) {} }); alert("stay")`, throwAway},
		{"endless script, memory", `for (;;) {}`, toMemory},
	}
	sessions := make([]liveSession, len(cases))
	for i, c := range cases {
		sessions[i] = begin(t, d, obj{})
		w := dial(t, sessions[i].CDP)
		page, _ := w.page()
		stuck(w, page, site.URL+"/")
		w.call(page, "Page.enable", nil, nil)
		w.post(page, "Runtime.evaluate", obj{"expression": c.script})
		if strings.Contains(c.script, "alert") {
			w.await(page, "Page.javascriptDialogOpening")
		}
	}
	answers := make([]daemon.Answer, len(cases))
	var ends sync.WaitGroup
	for i, c := range cases {
		ends.Go(func() {
			began := time.Now()
			a := d.Call(t, http.MethodDelete, at(sessions[i].ID, "?", c.mode), nil)
			t.Logf("%s: %d in %s %s", c.name, a.Status, time.Since(began).Round(time.Millisecond), a.Body)
			answers[i] = a
		})
	}
	ends.Wait()
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, a := sessions[i], answers[i]
			if a.Status != http.StatusOK {
				t.Errorf("the delete failed: %d %s", a.Status, a.Body)
				if a.Code() != "" {
					finish(t, d, s.ID, throwAway)
				}
				return
			}
			if c.mode == throwAway {
				return
			}
			back := begin(t, d, obj{"restore_from_session_id": s.ID, "enable_memory_snapshot": false})
			w := dial(t, back.CDP)
			page, _ := w.page()
			w.open(page, site.URL+"/")
			if got := w.eval(page, `document.cookie + localStorage.getItem("kept")`); got != "login=yesyes" {
				t.Errorf("after the restore: %q", got)
			}
			finish(t, d, back.ID, throwAway)
		})
	}
}
