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

// writer increments a counter in a cookie, localStorage and IndexedDB every few
// milliseconds, once the last one is in IndexedDB. It also notices if its document is replaced.
const writer = `new Promise((ready) => {
  const open = indexedDB.open("count", 1);
  open.onupgradeneeded = () => open.result.createObjectStore("n");
  open.onsuccess = () => {
    window.__n = 0;
    const write = () => {
      const n = ++window.__n;
      document.cookie = "count=" + n;
      localStorage.setItem("count", n);
      const at = open.result.transaction("n", "readwrite").objectStore("n");
      at.put(n, "a"); at.put(n, "b");
      if (n === 5) ready(n);
      at.transaction.oncomplete = () => { if (!window.__stop) setTimeout(write, 5); };
    };
    write();
  };
})`

// counted reads the counters after a restore.
const counted = `new Promise((read) => {
  const open = indexedDB.open("count", 1);
  open.onsuccess = () => {
    const at = open.result.transaction("n").objectStore("n").getAll();
    at.onsuccess = () => read(JSON.stringify([+document.cookie.match(/count=(\d+)/)[1], +localStorage.getItem("count"), ...at.result]));
  };
})`

// checkpoint makes a checkpoint of a running session.
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

// TestCheckpoint: a checkpoint is made while the session's pages write and a client is
// connected. Neither notices it, and the checkpoint is whole.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
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

	// Some seconds after the last page has loaded, Chrome checks each of the two origins
	// for a newer worker. Each was registered with one request before. It may check again later.
	daemon.Eventually(t, stepDeadline, "Chrome has checked for newer service workers", func() bool {
		asked := 0
		for _, request := range site.Log.Since(0) {
			if request.Path == "/worker.js" {
				asked++
			}
		}
		return asked >= 4
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
		// This event only says that the daemon has attached to a target.
		if e.Method != "Target.targetInfoChanged" {
			t.Errorf("the client received %s %s", e.Method, e.Params)
		}
	}
	w.mu.Unlock()
	if a.Snapshot.Datadir != "live" || !a.Default.Moved || len(a.Snapshot.Warnings) > 0 || a.PausedMS == 0 {
		t.Errorf("%+v, %+v", a, a.Default)
	}
	w.eval(page, `new Promise((more) => setInterval(() => { if (window.__n > `+n+`) more(1) }, 5))`)
	w.eval(page, "window.__stop = true")
	for _, asked := range site.Log.Since(since) {
		if asked.Path != "/favicon.ico" && asked.Path != "/worker.js" {
			t.Errorf("the site received %s %s", asked.Method, asked.Path)
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
	// The state is read shortly before the files are copied. A transaction is saved
	// whole or not at all.
	if saw[0] == 0 || saw[1] == 0 || saw[2] != saw[3] || saw[2] < saw[1]-1 {
		t.Errorf("cookie, localStorage and IndexedDB have %v", saw)
	}
	end(t, d, r.ID, "")

	// A page that waits for a response is saved as far as it can be read.
	w.forget()
	w.post(page, "Runtime.evaluate", obj{"expression": `alert("wait")`})
	w.await(page, "Page.javascriptDialogOpening")
	b := checkpoint(t, d, s.ID, body{})
	if b.Unchanged || len(b.Snapshot.Warnings) == 0 {
		t.Errorf("%+v", b)
	}
	w.call(page, "Page.handleJavaScriptDialog", obj{"accept": true}, nil)
	if w.eval(page, "1+1") != "2" {
		t.Error("the page does not continue")
	}

	// Chrome writes changes for some seconds. After that nothing is new.
	daemon.Eventually(t, stepDeadline, "a checkpoint is unchanged", func() bool {
		return checkpoint(t, d, s.ID, body{}).Unchanged
	})

	// Chrome writes cookies every 30 s. A cookie that a checkpoint has read survives a
	// kill before that, and the checkpoint is the default.
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
