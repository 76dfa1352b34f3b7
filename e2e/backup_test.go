package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/backup"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// stasis runs a verb of the binary and returns its exit code and output.
func stasis(t testing.TB, prefix []string, args ...string) (code int, said string) {
	t.Helper()
	line := append(append(append([]string{}, prefix...), daemon.Binary(t)), args...)
	out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", args, err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return code, string(out)
}

// backUp writes a complete backup of a daemon's data directory, with keys and archives.
func backUp(t testing.TB, prefix []string, d *daemon.Daemon, target string) {
	t.Helper()
	if code, said := stasis(t, prefix, "backup", target, "--data-dir", d.Dir, "--keys", "--archives"); code != 0 {
		t.Fatalf("the backup ended with %d:\n%s", code, said)
	}
}

// TestBackupUnderLoad: a backup can be restored although the daemon saves, deletes and
// prunes while it is written. Every snapshot that it names is restored, logged in, on
// another data directory.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	for _, as := range []struct {
		name   string
		target string
		prefix []string
	}{
		{"root, a folder", "backup", nil},
		{"an ordinary user, a file", "backup.tar.zst", setpriv(unprivileged)},
	} {
		t.Run(as.name, func(t *testing.T) {
			t.Parallel()
			o := daemon.Options{Dir: daemon.DataDir(t), NoSpares: true, Args: []string{"--keep-last", "2", "--prune-grace", "0s", "--engine", "shell"}}
			place, other := daemon.DataDir(t), daemon.DataDir(t)
			if as.prefix != nil {
				o = byOrdinaryUser(t, o, place, other)
			}
			target := filepath.Join(place, as.target)
			d := daemon.Start(t, o)
			site := apps.StartProbe(t)
			underLoad(t, d, site.URL, func() { backUp(t, as.prefix, d, target) })
			if again, said := stasis(t, as.prefix, "backup", target, "--data-dir", d.Dir); again != 2 || !strings.Contains(said, "--replace") {
				t.Errorf("a second backup of that name ended with %d: %s", again, said)
			}
			if code, said := stasis(t, as.prefix, "backup", "restore", target, "--data-dir", d.Dir); code != 5 {
				t.Errorf("a restore under a running daemon ended with %d: %s", code, said)
			}
			if code, said := stasis(t, as.prefix, "backup", "restore", target, "--data-dir", other); code != 0 {
				t.Fatalf("the restore ended with %d:\n%s", code, said)
			}
			o.Dir = other
			if as.prefix != nil {
				o.Env = homeIn(other)
			}
			checkRestores(t, daemon.Start(t, o), site.URL)
		})
	}
}

// underLoad runs do while one session is saved again and again, an ended one is deleted,
// and old snapshots are pruned.
func underLoad(t *testing.T, d *daemon.Daemon, site string, do func()) {
	s := begin(t, d, obj{"session_id": "live"})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site+"/")
	w.eval(page, `document.cookie = "login=yes; max-age=100000"`)
	checkpoint := func() daemon.Answer {
		return d.Call(t, http.MethodPost, at("live", "/snapshots"), obj{"label": "load"})
	}
	if a := checkpoint(); a.Status != http.StatusCreated {
		t.Fatalf("the first checkpoint: %d %s", a.Status, a.Body)
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			w.eval(page, fmt.Sprintf(`localStorage.setItem("n", "%d")`, n))
			if a := checkpoint(); a.Status != http.StatusCreated {
				t.Errorf("a checkpoint during the backup: %d %s", a.Status, a.Body)
				return
			}
		}
	})
	load.Go(func() {
		for ctx.Err() == nil {
			if a := d.Call(t, http.MethodPost, "/v1/prune", obj{"all": true}); a.Status != http.StatusOK {
				t.Errorf("a prune during the backup: %d %s", a.Status, a.Body)
				return
			}
		}
	})
	do()
	stop()
	load.Wait()
}

// checkRestores restores every snapshot that a daemon knows and checks its login. The
// session that ran at the time of the backup has ended and can be resumed.
func checkRestores(t *testing.T, d *daemon.Daemon, site string) {
	if s := look(t, d, "live"); s.Status != "terminated" || s.Why != profiles.ReasonNotRescued {
		t.Errorf("the session that ran when the backup was written: %+v", s)
	}
	var list struct{ Snapshots []struct{ ID string } }
	d.Must(t, http.StatusOK, http.MethodGet, at("live", "/snapshots"), nil).Into(t, &list)
	if len(list.Snapshots) == 0 {
		t.Fatal("the restored daemon knows no snapshots")
	}
	loggedIn := func(s liveSession) {
		t.Helper()
		w := dial(t, s.CDP)
		page, _ := w.page()
		w.open(page, site+"/")
		if got := w.eval(page, `document.cookie`); !strings.Contains(got, "login=yes") {
			t.Errorf("%s is not logged in: %s", s.ID, got)
		}
		finish(t, d, s.ID, throwAway)
	}
	for _, snap := range list.Snapshots {
		loggedIn(begin(t, d, obj{"restore_from_environment_id": snap.ID}))
	}
	d.Must(t, http.StatusOK, http.MethodPost, at("live", "/resume"), nil)
	loggedIn(look(t, d, "live"))
	nothingLeft(t, d)
}

// TestBackupKilled: a killed backup or restore leaves nothing that looks complete. The
// backup does not have its name yet, and no daemon starts on the directory. A second run
// of each succeeds.
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	for range 2 {
		finish(t, d, begin(t, d, obj{}).ID, toFiles+andDefault)
	}
	// A large file, so that the kill comes while it is copied.
	heavy := filepath.Join(d.Dir, "extensions", strings.Repeat("0", 64))
	if err := os.MkdirAll(heavy, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(heavy, "large"), make([]byte, 256<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	place, other := daemon.DataDir(t), daemon.DataDir(t)
	target := filepath.Join(place, "backup")
	killWhen(t, filepath.Join(place, "backup.partial", "content"), "backup", target, "--data-dir", d.Dir, "--keys", "--archives")
	if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a killed backup has its name: %v", err)
	}
	backUp(t, nil, d, target)
	if left := entries(t, place); len(left) != 1 {
		t.Errorf("other files besides the backup: %q", left)
	}

	killWhen(t, filepath.Join(other, backup.WorkFolder, backup.Extensions), "backup", "restore", target, "--data-dir", other)
	if code, said := serve(t, nil, "--data-dir", other); code != 2 || !strings.Contains(said, "was interrupted") {
		t.Errorf("a daemon on half a restore ended with %d: %s", code, said)
	}
	if code, said := stasis(t, nil, "backup", "restore", target, "--data-dir", other); code != 0 {
		t.Fatalf("the second restore ended with %d: %s", code, said)
	}
	again := daemon.Start(t, daemon.Options{Dir: other, NoSpares: true, Args: []string{"--engine", "shell"}})
	finish(t, again, begin(t, again, obj{"restore_default_environment_from_user_id": "default"}).ID, throwAway)
}

// killWhen runs a verb and kills it once a path exists. It looks while the process is stopped, which
// could otherwise end between the look and the kill.
func killWhen(t *testing.T, path string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), daemon.Binary(t), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	signal := func(s os.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatalf("%q ended before %s was seen: %v", args, path, err)
		}
	}
	for deadline := time.After(grace); ; {
		signal(syscall.SIGSTOP)
		if _, err := os.Lstat(path); err == nil {
			signal(syscall.SIGKILL)
			break
		}
		signal(syscall.SIGCONT)
		select {
		case err := <-ended:
			t.Fatalf("%q ended before %s was seen: %v", args, path, err)
		case <-deadline:
			t.Fatalf("%q: %s was not seen", args, path)
		case <-time.After(2 * time.Millisecond):
		}
	}
	if err := <-ended; err == nil {
		t.Fatalf("%q ended before it was killed", args)
	}
}

func entries(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// saysFull reports whether an error says that no space is left.
func saysFull(said string) bool {
	return strings.Contains(said, "is full") || strings.Contains(said, "no space") || strings.Contains(said, "no room")
}

// TestBackupFullDisk: on a full disk a backup fails and leaves nothing. So does a
// restore, after which no daemon starts on half a data directory.
func TestBackupFullDisk(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	finish(t, d, begin(t, d, obj{}).ID, toFiles+andDefault)
	place := daemon.DataDir(t)
	target := filepath.Join(place, "backup.tar.zst")
	backUp(t, nil, d, target)

	small := filepath.Join(smallStore(t), "snapshots")
	release := fillDisk(t, filepath.Dir(small), 64<<10)
	for _, name := range []string{"full", "full.tar.zst"} {
		if code, said := stasis(t, nil, "backup", filepath.Join(small, name), "--data-dir", d.Dir, "--archives"); code != 6 || !saysFull(said) {
			t.Errorf("%s ended with %d: %s", name, code, said)
		}
	}
	data := filepath.Join(small, "data")
	if code, said := stasis(t, nil, "backup", "restore", target, "--data-dir", data); code != 6 || !saysFull(said) {
		t.Errorf("the restore ended with %d: %s", code, said)
	}
	if left := entries(t, small); strings.Join(left, " ") != "ballast" {
		t.Errorf("backups and a restore on the full disk left %q", left)
	}
	release()
	if code, said := stasis(t, nil, "backup", "restore", target, "--data-dir", data); code != 0 {
		t.Errorf("with enough space, the restore ended with %d: %s", code, said)
	}
}

// TestBackupOfABucket: a backup includes snapshots in a bucket, and they are restored to
// a disk.
func TestBackupOfABucket(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	keys := []string{"AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey}
	store := []string{"--store", server.URL("stasis")}
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: store, Env: keys})
	saved := finish(t, d, begin(t, d, obj{"engine": "shell"}).ID, toFiles+andDefault)
	target, other := filepath.Join(daemon.DataDir(t), "backup"), daemon.DataDir(t)
	prefix := append([]string{"env"}, keys...)
	code, said := stasis(t, prefix, append([]string{"backup", target, "--data-dir", d.Dir, "--keys", "--archives"}, store...)...)
	if code != 0 || strings.Contains(said, "not in the backup") {
		t.Fatalf("the backup ended with %d:\n%s", code, said)
	}
	if code, said := stasis(t, nil, "backup", "restore", target, "--data-dir", other); code != 0 {
		t.Fatalf("the restore ended with %d:\n%s", code, said)
	}
	again := daemon.Start(t, daemon.Options{Dir: other, NoSpares: true})
	back := begin(t, again, obj{"restore_default_environment_from_user_id": "default"})
	if back.Restored == nil || back.Restored.SnapshotID != saved.Snapshot.ID {
		t.Errorf("restored %+v, want %s", back.Restored, saved.Snapshot.ID)
	}
	finish(t, again, back.ID, throwAway)
}
