package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/apps/probe"
	"github.com/stasisd/stasis/e2e/daemon"
)

// smallSize is the size of a small store, in bytes.
const smallSize = 128 << 20

// smallStore returns a data directory whose snapshots are on a file system of 128 MiB in
// memory. It needs root, as do the tests of Chrome's users.
func smallStore(t *testing.T) string {
	t.Helper()
	dir := daemon.DataDir(t)
	store := filepath.Join(dir, "snapshots")
	if err := os.Mkdir(store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("stasis-test", store, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", smallSize)); err != nil {
		t.Fatalf("cannot mount the small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(store, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fillDisk fills the store's file system except for some bytes. release frees the space
// again.
func fillDisk(t *testing.T, dir string, but int64) (release func()) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Join(dir, "snapshots"), &st); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "snapshots", "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-but)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(ballast); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("cannot remove the file that fills the disk: %v", err)
		}
	}
}

// heavy returns a session whose page has 24 MB that cannot be compressed.
func heavy(t *testing.T, d *daemon.Daemon, site *probe.Site) liveSession {
	t.Helper()
	s := begin(t, d, obj{})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	got := w.eval(page, `(async () => {
		localStorage.setItem("kept", "yes"); sessionStorage.setItem("tab", "yes"); document.cookie = "login=yes";
		const cache = await caches.open("heavy");
		for (let i = 0; i < 24; i++) {
			const part = new Uint8Array(1 << 20);
			for (let at = 0; at < part.length; at += 65536) crypto.getRandomValues(part.subarray(at, at + 65536));
			await cache.put("/part" + i, new Response(part));
		}
		return "done";
	})()`)
	if got != "done" {
		t.Fatalf("cannot store 24 MB in the page: %s", got)
	}
	return s
}

// storedState reads what heavy stored besides the 24 MB.
const storedState = `document.cookie + localStorage.getItem("kept") + sessionStorage.getItem("tab")`

// nothingLost checks that a failed save left the session usable, the store clean and the
// default unchanged.
func nothingLost(t *testing.T, d *daemon.Daemon, site *probe.Site, s liveSession, before ending, stored []string) {
	t.Helper()
	if now := stores(t, d); strings.Join(now, "\n") != strings.Join(stored, "\n") {
		t.Errorf("files in the store: %q, were %q", now, stored)
	}
	var list struct{ Snapshots []struct{ ID string } }
	d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, "/snapshots"), nil).Into(t, &list)
	if len(list.Snapshots) > 0 {
		t.Errorf("snapshots of a session whose save failed: %+v", list.Snapshots)
	}
	now := look(t, d, s.ID)
	w := dial(t, now.CDP) // the ticket from before the save
	if now.CDP != s.CDP {
		t.Errorf("cdp_url was %s, is %s", s.CDP, now.CDP)
	}
	page := w.attach(w.tab(site.URL))
	w.awaitRestored(page)
	if got := w.eval(page, storedState); got != "login=yesyesyes" {
		t.Errorf("the page's state: %q", got)
	}
	w.close()
	back := begin(t, d, obj{"engine": browser.EngineShell, "restore_default_environment_from_user_id": "default"})
	if back.Restored == nil || back.Restored.SnapshotID != before.Snapshot.ID {
		t.Errorf("the default restores %+v, want %s", back.Restored, before.Snapshot.ID)
	}
	finish(t, d, back.ID, throwAway)
}

// restoresHeavy checks that the default restores what heavy stored.
func restoresHeavy(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	again := begin(t, d, obj{"restore_default_environment_from_user_id": "default"})
	w := dial(t, again.CDP)
	page, _ := w.page()
	w.awaitRestored(page)
	if got := w.eval(page, storedState); got != "login=yesyesyes" {
		t.Errorf("after the restore, the page's state: %q", got)
	}
	finish(t, d, again.ID, throwAway)
	nothingLeft(t, d)
}

// stores lists the store's files, except those of the test.
func stores(t testing.TB, d *daemon.Daemon) []string {
	t.Helper()
	var found []string
	for _, name := range files(t, filepath.Join(d.Dir, "snapshots")) {
		if name != "ballast" {
			found = append(found, name)
		}
	}
	return found
}

// The disk is full when a session is saved: before Chrome is closed, while a memory
// snapshot is written, and after Chrome was closed. Each time the save fails, and nothing
// is lost. After the last, Chrome is started again on its profile. With enough space, the
// same session is saved, and its default restores everything.
func TestFaultDiskFull(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong(), Dir: smallStore(t)})
	site := apps.StartProbe(t)
	before := finish(t, d, begin(t, d, obj{"engine": browser.EngineShell}).ID, toFiles+andDefault)
	s := heavy(t, d, site)
	stored := stores(t, d)
	fails := func(t *testing.T, mode string, restarted bool) {
		t.Helper()
		wants(t, d.Call(t, http.MethodDelete, at(s.ID, "?", mode), nil), 507, "store_full")
		if now := look(t, d, s.ID); ended(now.Status) || now.Restarted != restarted {
			t.Errorf("%s: the session is %s, restarted %v: %s", mode, now.Status, now.Restarted, now.Reason)
		}
	}
	t.Run("before the save", func(t *testing.T) {
		release := fillDisk(t, d.Dir, 20<<20)
		fails(t, toFiles+andDefault, false)
		fails(t, toMemory, false)
		nothingLost(t, d, site, s, before, stored)
		release()
	})
	for _, mode := range []string{toMemory, toFiles} {
		t.Run("during the save, "+mode, func(t *testing.T) {
			release := limitUploads(t, d.Dir)
			fails(t, mode, mode == toFiles)
			nothingLost(t, d, site, s, before, stored)
			release()
		})
	}
	finish(t, d, s.ID, toFiles+andDefault)
	nothingLeft(t, d)
	restoresHeavy(t, d)
}

// limitUploads gives the uploads of a store a small file system above that of the store. So a
// save begins with enough space, which is that of the store, and finds the disk full after the
// first megabytes.
func limitUploads(t *testing.T, dir string) (release func()) {
	t.Helper()
	uploads := filepath.Join(dir, "snapshots", "tmp")
	if err := unix.Mount("stasis-test", uploads, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Fatalf("cannot mount the file system of the uploads: %v", err)
	}
	return func() {
		if left := files(t, uploads); len(left) > 0 {
			t.Errorf("uploads that are left: %q", left)
		}
		if err := unix.Unmount(uploads, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	}
}

// With a store that returns errors (a read-only file system), saves and readiness fail,
// and nothing is lost.
func TestFaultDiskReadOnly(t *testing.T) {
	t.Parallel()
	dir := smallStore(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true, Dir: dir, Args: []string{"--engine", "shell"}})
	s := begin(t, d, obj{})
	store := filepath.Join(dir, "snapshots")
	remount := func(flags uintptr) {
		if err := unix.Mount("stasis-test", store, "tmpfs", unix.MS_REMOUNT|flags, "size=128m"); err != nil {
			t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	wants(t, d.Call(t, http.MethodDelete, at(s.ID, "?", toFiles), nil), 500, "store_failed")
	if a := d.CallAs(t, "", http.MethodGet, "/readyz", nil); a.Status < http.StatusInternalServerError {
		t.Errorf("readyz = %d %s", a.Status, a.Body)
	}
	if now := look(t, d, s.ID); ended(now.Status) || now.Restarted {
		t.Errorf("the session is %s, restarted %v: %s", now.Status, now.Restarted, now.Reason)
	}
	remount(0)
	finish(t, d, s.ID, toFiles)
	nothingLeft(t, d)
}
