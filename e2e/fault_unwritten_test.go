package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// sets stores a value in every kind of storage that Chrome writes late, and in
// IndexedDB. "" removes it from all.
const sets = `(async (value) => {
  const age = value ? 100000 : 0;
  document.cookie = "lasting=" + value + "; max-age=" + age;
  document.cookie = "passing=" + value + (value ? "" : "; max-age=0");
  for (const area of [localStorage, sessionStorage]) value ? area.setItem("v", value) : area.removeItem("v");
  const db = await new Promise((done) => {
    const open = indexedDB.open("late", 1);
    open.onupgradeneeded = () => open.result.createObjectStore("s");
    open.onsuccess = () => done(open.result);
  });
  await new Promise((done) => {
    const at = db.transaction("s", "readwrite");
    value ? at.objectStore("s").put(value, "v") : at.objectStore("s").delete("v");
    at.oncomplete = done;
  });
  db.close();
  return "set";
})(%q)`

// readValues reads the value from all of them.
const readValues = `(async () => {
  const cookie = (name) => (document.cookie.match(name + "=([^;]*)") || [])[1];
  const db = await new Promise((done) => {
    const open = indexedDB.open("late");
    open.onsuccess = () => done(open.result);
  });
  const stored = await new Promise((done) => {
    if (!db.objectStoreNames.contains("s")) return done(undefined);
    const at = db.transaction("s").objectStore("s").get("v");
    at.onsuccess = () => done(at.result);
  });
  db.close();
  return [cookie("lasting"), cookie("passing"), localStorage.getItem("v"), sessionStorage.getItem("v"), stored].map((v) => v ?? "-").join(" ");
})()`

// all is the result of readValues if each kind has the value.
func all(value string) string { return fmt.Sprintf("%[1]s %[1]s %[1]s %[1]s %[1]s", value) }

// tabAt waits for a restored tab with a URL, attaches to it, and waits until it has loaded.
func tabAt(t *testing.T, d *daemon.Daemon, s liveSession, url string) (w *wire, page string) {
	t.Helper()
	w = dial(t, s.CDP)
	daemon.Eventually(t, grace, "a tab at "+url, func() bool {
		for _, info := range w.targets() {
			if info.Type == "page" && info.URL == url {
				page = w.attach(info.ID)
				return true
			}
		}
		return false
	})
	w.awaitRestored(page)
	return w, page
}

// hotJournal begins a rollback journal during a transaction. A commit deletes, truncates or
// overwrites it (https://www.sqlite.org/fileformat2.html#the_rollback_journal).
var hotJournal = []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}

// committed reports whether a SQLite file of a live profile has a text, outside of a
// transaction. A kill during a transaction would undo the change.
func committed(t testing.TB, d *daemon.Daemon, name, text string) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(d.Dir, "run", "*", "profile", "*", name))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte(text)) {
			return false
		}
		journal, err := os.ReadFile(path + "-journal")
		return err != nil || !bytes.HasPrefix(journal, hotJournal)
	})
}

// Everything in an answered checkpoint survives a crash right after it, of Chrome or of
// the daemon, although Chrome had written little of it. The long form has two more crashes
// of Chrome, after changed values.
func TestFaultAcknowledged(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{"restart": "on_crash"})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/check?tab=front")
	values := []string{"first", ""} // a crash of Chrome, and a kill of the daemon
	if storetest.Long() {
		values = []string{"first", "second", "", "third"}
	}
	for n, value := range values {
		w.eval(page, fmt.Sprintf(sets, value))
		if value == "" {
			value = "-"
		}
		if got := w.eval(page, readValues); got != all(value) {
			t.Fatalf("the page holds %q, want %q", got, value)
		}
		checkpoint(t, d, s.ID, body{})
		if n < len(values)-1 {
			kill9(t, mains(d)[0])
			w.ended()
			daemon.Eventually(t, grace, "Chrome was started again", func() bool { return len(runsOf(t, d, s.ID)) == n+2 })
		} else {
			d.Kill(t)
			d.Restart(t)
			d.Must(t, http.StatusOK, http.MethodPost, at(s.ID, "/resume"), nil).Into(t, &s)
		}
		w, page = tabAt(t, d, s, site.URL+"/check?tab=front")
		if got := w.eval(page, readValues); got != all(value) {
			t.Errorf("%d: after the crash the page holds %q, want %q", n+1, got, value)
		}
	}
	// What Chrome has written since the checkpoint is newer: the tab's new address, and
	// the deletions. What it had not written is restored too.
	w.eval(page, fmt.Sprintf(sets, "third"))
	checkpoint(t, d, s.ID, body{})
	w.eval(page, `document.cookie = "lasting=; max-age=0"; for (let i = 0; i < 600; i++) document.cookie = "churn=" + i + "; max-age=100000"`)
	w.open(page, site.URL+"/check?tab=later")
	daemon.Eventually(t, grace, "the changed cookies are on disk", func() bool { return committed(t, d, "Cookies", "churn") })
	daemon.Eventually(t, grace, "Chrome's session files have the tab's new address", func() bool { return inSessionFiles(t, d, site.URL+"/check?tab=later") })
	kill9(t, mains(d)[0])
	w.ended()
	daemon.Eventually(t, grace, "Chrome was started again", func() bool { return len(runsOf(t, d, s.ID)) == len(values)+2 })
	w, page = tabAt(t, d, s, site.URL+"/check?tab=later")
	if got := w.eval(page, readValues); got != "- third third third third" {
		t.Errorf("after the last crash the page holds %q", got)
	}
	if now := look(t, d, s.ID); len(now.Restored.Warnings) == 0 {
		t.Error("no warning that a crash may have lost data")
	}
	finish(t, d, s.ID, throwAway)
	nothingLeft(t, d)
}
