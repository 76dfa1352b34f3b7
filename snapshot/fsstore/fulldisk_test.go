package fsstore_test

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot/fsstore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

const mountedEnv = "STASIS_TEST_SMALL_DISK"

// The disk is really full. The test runs itself again in its own mount namespace, where
// it may mount a small file system that disappears with the namespace.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(mountedEnv); dir != "" {
		if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
		fullDisk(t, filepath.Join(dir, "snapshots"))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), mountedEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fullDisk(t *testing.T, dir string) {
	s := openIn(t, dir, fsstore.Options{})
	v := newVault(t, s)
	first, err := v.Save(t.Context(), draft(firstID, []byte("one")))
	if err != nil {
		t.Fatal(err)
	}
	before := storetest.Files(t, dir)
	if err := v.CheckSpace(t.Context(), 4<<20); !fault.Is(err, fault.StoreFull) {
		t.Errorf("CheckSpace: %v, want store_full", err)
	}
	big := make([]byte, 4<<20)
	rand.Read(big)
	if _, err := v.Save(t.Context(), draft(secondID, big)); !fault.Is(err, fault.StoreFull) {
		t.Errorf("Save: %v, want store_full", err)
	}
	if diff := cmp.Diff(before, storetest.Files(t, dir)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	if latest, err := v.Latest(t.Context(), place); err != nil || latest.ID != firstID {
		t.Errorf("latest is %q, %v", latest.ID, err)
	}
	if err := v.Verify(t.Context(), first); err != nil {
		t.Errorf("the older snapshot: %v", err)
	}
	if _, err := v.Save(t.Context(), draft(secondID, []byte("two"))); err != nil {
		t.Errorf("a small save afterwards: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
