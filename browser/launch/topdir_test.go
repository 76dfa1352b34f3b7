package launch

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSetTopDir(t *testing.T) {
	disk, err := os.MkdirTemp("/var/tmp", "topdir")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(disk) })
	for _, on := range []string{t.TempDir(), disk} {
		setTopDir(on)
		var fs unix.Statfs_t
		f, err := os.Open(on)
		if err == nil {
			err = unix.Fstatfs(int(f.Fd()), &fs)
		}
		if err != nil {
			t.Fatal(err)
		}
		flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		_ = f.Close()
		ext4 := fs.Type == unix.EXT4_SUPER_MAGIC
		t.Logf("%s is on ext4: %v", on, ext4)
		if ext4 && (err != nil || flags&topFolder == 0) {
			t.Errorf("%s has the flags %#x, %v", on, flags, err)
		}
		if err := os.Mkdir(filepath.Join(on, "folder"), 0o700); err != nil {
			t.Error(err)
		}
	}
	setTopDir("/var/tmp/no such folder") // does nothing
}
