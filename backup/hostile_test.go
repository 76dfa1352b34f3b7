package backup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/backup"
)

// contextWithHook is a context that calls look at each call of Err.
type contextWithHook struct {
	context.Context
	look func()
}

func (w contextWithHook) Err() error {
	w.look()
	return w.Context.Err()
}

// Root restores for another user. That user owns the data directory and replaces the
// working folder of the restore by a link. Nothing is written, moved or removed where the
// link leads.
func TestRestoreFollowsNoLink(t *testing.T) {
	for name, after := range map[string]string{"while it unpacks": "restoring", "when it has unpacked": "restoring/snapshots/users/o/sessions/s/x.json"} {
		t.Run(name, func(t *testing.T) {
			source := filepath.Join(t.TempDir(), "b.tar.zst")
			if _, err := write(t, source, false); err != nil {
				t.Fatal(err)
			}
			dir, outside := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(outside, "theirs"), []byte("theirs"), 0o600); err != nil {
				t.Fatal(err)
			}
			swapped := false
			ctx := contextWithHook{t.Context(), func() {
				if _, err := os.Lstat(filepath.Join(dir, after)); err != nil || swapped {
					return
				}
				swapped = true
				at := filepath.Join(dir, "restoring")
				if err := errors.Join(os.Rename(at, filepath.Join(dir, "aside")), os.Symlink(outside, at)); err != nil {
					t.Error(err)
				}
			}}
			if _, err := backup.Restore(ctx, source, "", dir); err == nil {
				t.Error("the backup was restored")
			}
			if !swapped {
				t.Fatal("the link was never made")
			}
			if diff := cmp.Diff(map[string]string{"theirs": "theirs"}, readFiles(t, outside)); diff != "" {
				t.Errorf("where the link leads (-want +got):\n%s", diff)
			}
		})
	}
}

// Another user has made the partial folder of a backup beforehand, to read or change what
// is written there. A backup makes its own folder.
func TestPartialFolderOfAnother(t *testing.T) {
	for name, prepare := range map[string]func(string) error{
		"writable by all": func(at string) error { return os.Chmod(at, 0o777) },
		"of another user": func(at string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(at, 0o770) // the closest that an ordinary user can do
			}
			return os.Chown(at, 12345, 12345)
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "b")
			partial := target + ".partial"
			if err := errors.Join(os.Mkdir(partial, 0o700), prepare(partial)); err != nil {
				t.Fatal(err)
			}
			theirs, err := os.Open(partial)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = theirs.Close() }()
			w, err := backup.Begin(target, false)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = w.Close() }()
			was, err := theirs.Stat()
			if err != nil {
				t.Fatal(err)
			}
			is, err := os.Stat(partial)
			if err != nil {
				t.Fatal(err)
			}
			if os.SameFile(was, is) || is.Mode().Perm() != 0o700 {
				t.Errorf("the backup is written in the existing folder, mode %v", is.Mode())
			}
		})
	}
}
