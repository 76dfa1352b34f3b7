package fsstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// failing is a store in which one step fails, chosen by its number.
type failing struct {
	*fsstore.Store
	vault       *snapshot.Vault
	dir         string
	fail, steps int
}

func newFailing(t *testing.T, errno error) *failing {
	t.Helper()
	f := &failing{dir: t.TempDir()}
	f.Store = openIn(t, f.dir, fsstore.Options{Before: func(fsstore.Step, string) error {
		if f.steps++; f.steps == f.fail {
			return &os.PathError{Op: "test", Path: "x", Err: errno}
		}
		return nil
	}})
	f.vault = newVault(t, f.Store)
	return f
}

func (f *failing) save(t *testing.T, id string) {
	t.Helper()
	if _, err := f.vault.Save(t.Context(), draft(id, []byte(id))); err != nil {
		t.Fatal(err)
	}
}

// latest checks that the location's latest is one of these snapshots and complete.
func (f *failing) latest(t *testing.T, ids ...string) {
	t.Helper()
	s, err := f.vault.Latest(t.Context(), place)
	if err == nil {
		err = f.vault.Verify(t.Context(), s)
	}
	if err != nil {
		t.Errorf("step %d: latest: %v", f.fail, err)
	}
	for _, id := range ids {
		if s.ID == id {
			return
		}
	}
	t.Errorf("step %d: latest is %q", f.fail, s.ID)
}

// errnos maps fault codes to the disk errors that cause them.
var errnos = map[fault.Code]error{fault.StoreFull: syscall.ENOSPC, fault.StoreFailed: syscall.EIO}

// Each step of each write of a save may fail because of a full or a broken disk. The
// error says which, the older snapshot stays intact, and no file remains.
func TestSaveFailsAtEveryStep(t *testing.T) {
	for code, errno := range errnos {
		t.Run(string(code), func(t *testing.T) {
			f := newFailing(t, errno)
			f.save(t, firstID)
			before := storetest.Files(t, f.dir)
			for f.fail = 1; ; f.fail++ {
				f.steps = 0
				_, err := f.vault.Save(t.Context(), draft(secondID, []byte(secondID)))
				if err == nil {
					break
				}
				if !fault.Is(err, code) {
					t.Errorf("step %d: %v, want %s", f.fail, err, code)
				}
				if diff := cmp.Diff(before, storetest.Files(t, f.dir)); diff != "" {
					t.Errorf("step %d: files (-before +after):\n%s", f.fail, diff)
				}
				f.latest(t, firstID)
			}
			if f.fail < 15 {
				t.Errorf("only %d steps failed", f.fail-1)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Each step of a delete may fail too. latest then names a complete snapshot and the
// others stay. A repeated delete leaves nothing.
func TestDeleteFailsAtEveryStep(t *testing.T) {
	for code, errno := range errnos {
		t.Run(string(code), func(t *testing.T) {
			for n, done := 1, false; !done; n++ {
				f := newFailing(t, errno)
				f.save(t, firstID)
				before := storetest.Files(t, f.dir)
				f.save(t, secondID)

				f.fail, f.steps = n, 0
				err := f.vault.Delete(t.Context(), place, secondID, storetest.NotInUse)
				f.fail = 0
				if done = err == nil; done && n < 8 {
					t.Errorf("only %d steps failed", n-1)
				}
				if err != nil && !fault.Is(err, code) {
					t.Errorf("step %d: %v, want %s", n, err, code)
				}
				f.latest(t, firstID, secondID)
				if err != nil {
					if err := f.vault.Delete(t.Context(), place, secondID, storetest.NotInUse); err != nil && !fault.Is(err, fault.SnapshotNotFound) {
						t.Errorf("step %d: again: %v", n, err)
					}
				}
				f.latest(t, firstID)
				if left := storetest.Files(t, f.dir); len(left) != len(before) {
					t.Errorf("step %d: files (-before +after):\n%s", n, cmp.Diff(before, left))
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A symbolic link that was planted in the store is refused, wherever it leads and
// whatever it replaces. Its target is neither read nor written. The store's own folder
// may be a link, because the operator chooses its path.
func TestPlantedLinks(t *testing.T) {
	history := filepath.Join("users", place.Owner, "sessions", place.Session, "scopes/agent/browser/snapshots/immutable_history")
	for _, planted := range []string{
		"users", "users/" + place.Owner, filepath.Dir(history), history, filepath.Join(history, "snapshot_"+secondID+".json"),
		filepath.Join(filepath.Dir(history), "snapshot_latest.json"), filepath.Join(filepath.Dir(history), "manifest.json"), "archives",
	} {
		for _, inside := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, inside %v", planted, inside), func(t *testing.T) { plant(t, planted, inside) })
		}
	}
}

func plant(t *testing.T, planted string, inside bool) {
	dir := t.TempDir()
	to := t.TempDir()
	if inside {
		to = filepath.Join(dir, "elsewhere")
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(to, "bystander"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := storetest.Files(t, to)
	at := filepath.Join(dir, planted)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, dir, fsstore.Options{})
	v := newVault(t, s)
	if _, err := v.Save(t.Context(), draft(secondID, []byte("two"))); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("Save: %v, want store_failed", err)
	}
	latest, err := place.LatestKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []snapshot.Key{latest, snapshot.ArchiveFolder()} {
		if !strings.HasPrefix(key.String(), planted) {
			continue
		}
		if _, err := s.Stat(t.Context(), key); !fault.Is(err, fault.StoreFailed) {
			t.Errorf("Stat of %s: %v", key, err)
		}
		if err := s.Delete(t.Context(), key); !fault.Is(err, fault.StoreFailed) {
			t.Errorf("Delete of %s: %v", key, err)
		}
	}
	if diff := cmp.Diff(before, storetest.Files(t, to)); diff != "" {
		t.Errorf("where the link leads (-before +after):\n%s", diff)
	}
	if info, err := os.Lstat(at); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Open would delete files through a link named tmp and write through a link named lock.
func TestOpenRefusesLinks(t *testing.T) {
	for _, name := range []string{"tmp", "lock"} {
		dir, to := t.TempDir(), t.TempDir()
		target := to
		if name == "lock" {
			target = filepath.Join(to, "made")
		}
		if err := os.WriteFile(filepath.Join(to, "bystander"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := fsstore.Open(dir, fsstore.Options{}); !fault.Is(err, fault.StoreFailed) {
			t.Errorf("%s: %v, want store_failed", name, err)
		}
		if left := storetest.Files(t, to); len(left) != 1 {
			t.Errorf("%s: %v", name, left)
		}
	}
}
