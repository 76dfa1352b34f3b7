package launch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
