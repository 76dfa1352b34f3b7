package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// The error about a key file that this process may not read names the file, its owner and
// the command that mends it.
func TestKeyOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	loadKeys(t, dir)
	path := filepath.Join(dir, "archive-key")
	if os.Geteuid() != 0 {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	} else {
		const nobody = 65534
		err := errors.Join(os.Chown(filepath.Join(dir, "identity"), nobody, nobody), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
		if err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread() // the kernel has this user for each thread
		defer runtime.UnlockOSThread()
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	}
	_, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: dir})
	says := fault.MessageOf(err)
	if !fault.Is(err, fault.Config) || !strings.Contains(says, "the key file "+path+" belongs to ") || !strings.HasSuffix(says, ": "+path) {
		t.Errorf("%v", err)
	}
}
