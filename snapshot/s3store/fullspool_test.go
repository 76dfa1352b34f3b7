package s3store_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

const mountedEnv = "STASIS_TEST_SMALL_DISK"

// The disk for uploads is really full. The test runs itself again in its own mount
// namespace, where it may mount a small file system that disappears with the namespace.
func TestFullSpool(t *testing.T) {
	if dir := os.Getenv(mountedEnv); dir != "" {
		if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
		fullSpool(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullSpool$")
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

func fullSpool(t *testing.T, dir string) {
	o := s3test.Start(t).Options(t)
	o.Spool = dir
	s := open(t, o)
	if free, err := s.FreeSpace(t.Context()); err != nil || free <= 0 || free > 1<<20 {
		t.Errorf("FreeSpace: %d, %v", free, err)
	}
	for range 2 { // the first upload's space must be free again
		up, err := s.Upload(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := up.Write(make([]byte, 1<<19)); err != nil {
			t.Errorf("what fits: %v", err)
		}
		if _, err := up.Write(make([]byte, 1<<20)); !fault.Is(err, fault.StoreFull) {
			t.Errorf("what does not fit: %v", err)
		}
		if err := up.Abort(); err != nil {
			t.Error(err)
		}
	}
}
