package e2e

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// With --undo-window, a session that was ended without a save keeps its login: a second
// DELETE saves it. Meanwhile its profile belongs to the daemon and nobody else can read
// it. A killed daemon leaves nothing of it.
func TestUndoWindow(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: append(shellUnlessLong(), "--undo-window", "10m")})
	site := apps.StartProbe(t)
	discarded := func(id string) {
		t.Helper()
		s := begin(t, d, obj{"session_id": id})
		w := dial(t, s.CDP)
		page, _ := w.page()
		w.open(page, site.URL+"/")
		w.eval(page, `document.cookie = "login=42"; localStorage.setItem("login", "42")`)
		var a struct {
			Until *string `json:"undo_until"`
		}
		d.Must(t, http.StatusOK, http.MethodDelete, at(id), nil).Into(t, &a)
		if a.Until == nil {
			t.Fatal("the session is not kept")
		}
	}
	discarded("undone")
	kept := 0
	if err := filepath.WalkDir(filepath.Join(d.Dir, "run"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if kept++; int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			t.Errorf("%s belongs to another user", path)
		}
		if e.IsDir() && filepath.Dir(path) == filepath.Join(d.Dir, "run") && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}); err != nil || kept < 5 {
		t.Errorf("%v, %d files are kept", err, kept)
	}
	var a struct {
		Deleted  bool
		Snapshot *struct{ ID string }
	}
	d.Must(t, http.StatusOK, http.MethodDelete, at("undone")+"?save_snapshot_mode=filesystem", nil).Into(t, &a)
	if a.Deleted || a.Snapshot == nil {
		t.Fatalf("%+v", a)
	}
	back := begin(t, d, obj{"restore_from_session_id": "undone"})
	w := dial(t, back.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	if got := w.eval(page, `document.cookie + " " + localStorage.getItem("login")`); got != "login=42 42" {
		t.Errorf("restored: %q", got)
	}
	finish(t, d, back.ID, throwAway)
	discarded("lost")
	d.Kill(t)
	d.Restart(t)
	if left, err := os.ReadDir(filepath.Join(d.Dir, "run")); err != nil || len(left) > 0 {
		t.Errorf("after a kill: %v, %v", left, err)
	}
	if a := d.Call(t, http.MethodDelete, at("lost")+"?save_snapshot_mode=filesystem", nil); a.Code() != "no_snapshot" {
		t.Errorf("after a kill: %d %s", a.Status, a.Body)
	}
}
