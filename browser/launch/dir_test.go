package launch

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// A reclaimed directory has only the profile, belongs to the daemon, and its UID is free.
func TestReclaim(t *testing.T) {
	l := newLauncher(t, "")
	d, err := l.NewDir("mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"profile/Default/Cookies", "files/report.txt"} {
		path := filepath.Join(d.Path, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Chown(); err != nil {
		t.Fatal(err)
	}
	if err := d.Reclaim(); err != nil {
		t.Fatal(err)
	}
	if len(l.uids.taken) != 0 {
		t.Errorf("UIDs still taken: %v", l.uids.taken)
	}
	for _, name := range []string{"", "profile", "profile/Default/Cookies"} {
		info, err := os.Lstat(filepath.Join(d.Path, name))
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q belongs to %d, mode %v", name, owner, info.Mode())
		}
	}
	if left, err := os.ReadDir(d.Path); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Error("the directory is still there")
	}
}

// A directory that is retained is removed when the last call releases it, but only if Remove was
// called.
func TestRetain(t *testing.T) {
	l := newLauncher(t, "")
	d, err := l.NewDir("mine")
	if err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		_, err := os.Stat(d.Path)
		return err == nil
	}
	d.Retain()()
	first, second := d.Retain(), d.Retain()
	if err := d.Remove(); err != nil || !there() {
		t.Errorf("removed while it is retained: %v", err)
	}
	first()
	first()
	if !there() || len(l.uids.taken) != 1 {
		t.Error("removed while another call retains it")
	}
	second()
	if there() || len(l.uids.taken) != 0 {
		t.Error("not removed")
	}
}

// A directory whose Chrome has not ended yet keeps its UID, and is removed when Chrome has.
func TestRemoveLater(t *testing.T) {
	l := newLauncher(t, "")
	p := start(t, l, Options{URL: "about:blank"})
	newClient(t, p).version()
	d := p.dir
	stop, resume := syscall.SIGSTOP, syscall.SIGCONT
	if err := p.warden.Process.Signal(stop); err != nil { // so that nothing ends Chrome
		t.Fatal(err)
	}
	given := make(chan bool)
	d.WhenRemoved(func() { close(given) })
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Kill(canceled); !fault.Is(err, fault.Timeout) {
		t.Errorf("the end of a Chrome whose warden is stopped: %v", err)
	}
	for range 2 {
		if err := d.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(d.Profile()); err != nil {
		t.Errorf("the directory of a Chrome that runs: %v", err)
	}
	select {
	case <-given:
		t.Error("the UID of a Chrome that runs was returned")
	default:
	}
	if err := p.warden.Process.Signal(resume); err != nil {
		t.Fatal(err)
	}
	<-given
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Error("the directory is still there")
	}
}

// Chrome's users can enter the folder of the run directories, also if the daemon of an ordinary
// user made it or the umask removed their bits. Other folders keep their mode.
func TestFolderIsPassable(t *testing.T) {
	for before, want := range map[os.FileMode]os.FileMode{0o700: 0o711, 0o755: 0o755} {
		root := filepath.Join(shortTemp(t), "run")
		if err := os.Mkdir(root, before); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Root: root, UIDs: testUIDs}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(root); err != nil || info.Mode().Perm() != want {
			t.Errorf("a folder with mode %o: %v, %v; want %o", before, info.Mode(), err, want)
		}
	}
}
