package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	sessionsave "github.com/stasisd/stasis/session/save"
)

// writer counts up in a cookie, localStorage and IndexedDB every few
// milliseconds, and knows whether its document was ever replaced.
const writer = `new Promise((ready) => {
  const open = indexedDB.open("count", 1);
  open.onupgradeneeded = () => open.result.createObjectStore("n");
  open.onsuccess = () => {
    window.__n = 0;
    window.__t = setInterval(() => {
      const n = ++window.__n;
      document.cookie = "count=" + n;
      localStorage.setItem("count", n);
      const at = open.result.transaction("n", "readwrite").objectStore("n");
      at.put(n, "a"); at.put(n, "b");
      if (n === 5) ready(n);
    }, 5);
  };
})`

// counted is what a restore brought of it.
const counted = `new Promise((read) => {
  const open = indexedDB.open("count", 1);
  open.onsuccess = () => {
    const at = open.result.transaction("n").objectStore("n").getAll();
    at.onsuccess = () => read(JSON.stringify([+document.cookie.match(/count=(\d+)/)[1], +localStorage.getItem("count"), ...at.result]));
  };
})`

// checkpoint saves a running session.
func checkpoint(t testing.TB, d *daemon.Daemon, id string, b body) (a sessionsave.CheckpointAnswer) {
	t.Helper()
	answer := d.Call(t, http.MethodPost, "/v1/sessions/"+id+"/snapshots", b)
	if answer.Status != http.StatusCreated && answer.Status != http.StatusOK {
		t.Fatalf("checkpoint: %d %s", answer.Status, answer.Body)
	}
	answer.Into(t, &a)
	if a.Unchanged != (answer.Status == http.StatusOK) {
		t.Errorf("%d, unchanged %t", answer.Status, a.Unchanged)
	}
	return a
}

// TestCheckpoint: a session that is saved while its pages write and a client is
// connected goes on as if nothing had happened, and the checkpoint is whole.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := apps.StartProbe(t)
	s := create(t, d, body{"user_id": "ada", "auto_save": body{"interval_seconds": 86400, "on": []string{"login"}, "keep": 1}})
	before := fillProbe(t, site, s.CDP)
	var auto struct {
		Auto struct {
			Snapshot string `json:"last_snapshot_id"`
		} `json:"auto_save"`
	}
	daemon.Eventually(t, stepDeadline, "the login is saved", func() bool {
		d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+s.ID, nil).Into(t, &auto)
		return auto.Auto.Snapshot != ""
	})

	// Chrome looks for a newer worker of each of the two origins, seconds after their
	// last page has loaded: each has been registered with one request before.
	daemon.Eventually(t, stepDeadline, "Chrome has looked for newer service workers", func() bool {
		asked := 0
		for _, request := range site.Log.Since(0) {
			if request.Path == "/worker.js" {
				asked++
			}
		}
		return asked == 4
	})
	w := dial(t, s.CDP)
	var page string
	for _, at := range w.targets() {
		if at.Type == "page" && strings.HasSuffix(at.URL, "/check?tab=front") {
			page = w.attach(at.ID)
		}
	}
	w.call("", "Target.setDiscoverTargets", obj{"discover": true}, nil)
	w.call("", "Target.setAutoAttach", obj{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true}, nil)
	for _, domain := range []string{"Page", "Runtime", "Inspector", "DOM"} {
		w.call(page, domain+".enable", nil, nil)
	}
	w.eval(page, writer)
	since := site.Log.Len()
	w.forget()
	a := checkpoint(t, d, s.ID, body{"save_as_default": true, "label": "before"})
	n := w.eval(page, "String(window.__n)")
	w.mu.Lock()
	for _, e := range w.events {
		// That the daemon has a session of a target that no client has, its info tells.
		if e.Method != "Target.targetInfoChanged" {
			t.Errorf("the client was told %s %s", e.Method, e.Params)
		}
	}
	w.mu.Unlock()
	if a.Snapshot.Datadir != "live" || !a.Default.Moved || len(a.Snapshot.Warnings) > 0 || a.PausedMS == 0 {
		t.Errorf("%+v, %+v", a, a.Default)
	}
	w.eval(page, `new Promise((more) => setInterval(() => { if (window.__n > `+n+`) more(1) }, 5))`)
	w.eval(page, "clearInterval(window.__t)")
	for _, asked := range site.Log.Since(since) {
		if asked.Path != "/favicon.ico" {
			t.Errorf("the site was asked %s %s", asked.Method, asked.Path)
		}
	}

	since = site.Log.Len()
	r := create(t, d, body{"restore_default_environment_from_user_id": "ada"})
	checkTabs(t, site, r, before)
	checkRequests(t, site, since)
	got := drive(t, puppeteer, r.CDP, toTab("/check?tab=front"), evaluate(counted))
	var saw []int
	if err := json.Unmarshal([]byte(text(t, got[1])), &saw); err != nil || len(saw) != 4 {
		t.Fatalf("%v: %s", err, got[1])
	}
	// The state is read a moment before the files stand still; a transaction is
	// there whole or not at all.
	if saw[0] == 0 || saw[1] == 0 || saw[2] != saw[3] || saw[2] < saw[1] {
		t.Errorf("cookie, localStorage and IndexedDB have %v", saw)
	}
	end(t, d, r.ID, "")

	// A page that waits for an answer is saved as far as it can be read.
	w.forget()
	w.post(page, "Runtime.evaluate", obj{"expression": `alert("wait")`})
	w.await(page, "Page.javascriptDialogOpening")
	b := checkpoint(t, d, s.ID, body{})
	if b.Unchanged || len(b.Snapshot.Warnings) == 0 {
		t.Errorf("%+v", b)
	}
	w.call(page, "Page.handleJavaScriptDialog", obj{"accept": true}, nil)
	if w.eval(page, "1+1") != "2" {
		t.Error("the page does not go on")
	}

	// Chrome writes for some seconds what pages did before; then nothing is new.
	daemon.Eventually(t, stepDeadline, "a checkpoint that finds nothing changed", func() bool {
		return checkpoint(t, d, s.ID, body{}).Unchanged
	})

	// Chrome writes cookies every 30 s. One that a checkpoint has read is there after
	// a kill all the same, and the default is that checkpoint.
	w.eval(page, `document.cookie = "fresh=1; max-age=1000"`)
	last := checkpoint(t, d, s.ID, body{"save_as_default": true})
	if !last.Default.Moved || last.Default.Version != 2 {
		t.Errorf("%+v", last.Default)
	}
	d.Kill(t)
	d.Restart(t)
	if snapshot, version := defaultOf(t, d, "ada"); snapshot != last.Snapshot.ID || version != 2 {
		t.Errorf("the default is %s, version %d", snapshot, version)
	}
	r = create(t, d, body{"restore_from_session_id": s.ID})
	got = drive(t, puppeteer, r.CDP, toTab("/check?tab=front"), evaluate("document.cookie"))
	if jar := text(t, got[1]); !strings.Contains(jar, "fresh=1") {
		t.Errorf("after the kill the cookies are %q", jar)
	}
	end(t, d, r.ID, "")
	nothingLeft(t, d)
}
