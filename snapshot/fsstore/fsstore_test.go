package fsstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/snapshot/fsstore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

func open(t *testing.T) snapshot.Store { return openIn(t, t.TempDir(), fsstore.Options{}) }

func openIn(t *testing.T, dir string, o fsstore.Options) *fsstore.Store {
	t.Helper()
	s, err := fsstore.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestBehindFaultstore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) snapshot.Store { return faultstore.New(open(t)) })
}

func TestVaultWithFaults(t *testing.T) { storetest.RunVault(t, open, 5) }

func TestDamage(t *testing.T) { storetest.RunDamage(t, open, 211, 8) }

func TestDocuments(t *testing.T) { storetest.RunDocuments(t, open, 3) }

var place = snapshot.Location{
	Owner: "0123456789abcdef0123456789abcdef", Session: "s-1", Scope: "agent", ScopeID: "browser",
}

const (
	firstID  = "01900000-0000-7000-8000-000000000001"
	secondID = "01900000-0000-7000-8000-000000000002"
)

func newVault(t *testing.T, s snapshot.Store) *snapshot.Vault {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.NewVault(s, snapshot.NewKeys(identity, [32]byte{}), snapshot.Options{Now: time.Now, Reserve: 1})
}

func draft(id string, data []byte) snapshot.Draft {
	return snapshot.Draft{
		ID: id, Location: place, Mode: snapshot.Filesystem, CreatedAt: time.Unix(1_800_000_000, 0),
		Entries: []snapshot.Entry{{Name: "file", Data: data}},
	}
}

// A create whose folder cannot be synced leaves no object. The object might not survive a
// crash, and the caller got an error.
func TestUnsyncedCreateIsUndone(t *testing.T) {
	s := openIn(t, t.TempDir(), fsstore.Options{Before: func(step fsstore.Step, _ string) error {
		if step == fsstore.StepSyncTo {
			return syscall.EIO
		}
		return nil
	}})
	key, err := place.DocumentKey(firstID)
	if err != nil {
		t.Fatal(err)
	}
	if created, err := s.Create(t.Context(), key, []byte("x")); created || !fault.Is(err, fault.StoreFailed) {
		t.Errorf("Create: %v, %v", created, err)
	}
	if _, err := s.Open(t.Context(), key); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("Open: %v, want snapshot_not_found", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Files are 0600 and folders 0700. The layout is the published one. A delete removes a
// folder that it empties.
func TestLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	s := openIn(t, dir, fsstore.Options{})
	v := newVault(t, s)
	saved, err := v.Save(t.Context(), draft(firstID, []byte("one")))
	if err != nil {
		t.Fatal(err)
	}
	base := "users/" + place.Owner + "/sessions/s-1/scopes/agent/browser/snapshots/"
	want := map[string]bool{
		"archives/" + saved.Archive.ID: true, base + "manifest.json": true, base + "snapshot_latest.json": true,
		base + "immutable_history/snapshot_" + firstID + ".json": true,
	}
	got := map[string]bool{}
	err = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		perm := os.FileMode(0o600)
		if info.IsDir() {
			perm = 0o700
		} else {
			got[strings.TrimPrefix(path, dir+"/")] = true
			delete(got, "lock") // the lock file is no object
		}
		if info.Mode().Perm() != perm {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := v.Delete(t.Context(), place, firstID, storetest.NotInUse); err != nil {
		t.Fatal(err)
	}
	if left := storetest.Files(t, dir); len(left) > 0 {
		t.Errorf("after Delete there is %v", left)
	}
	if _, err := os.Lstat(filepath.Join(dir, "users", place.Owner)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the emptied folders are still there: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The next Open removes what an interrupted write left.
func TestOrphansAreSwept(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, fsstore.Options{})
	up, err := s.Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if n := len(storetest.Files(t, dir)); n != 1 {
		t.Fatalf("%d files, want the temporary one", n)
	}
	if err := s.Close(); err != nil { // as if the process died here
		t.Fatal(err)
	}
	if err := openIn(t, dir, fsstore.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	if left := storetest.Files(t, dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A folder has one owner. A reader need not be the owner, and cannot write.
func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, fsstore.Options{})
	key, err := place.LatestKey()
	if err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, s, key, []byte("x"))
	if _, err := fsstore.Open(dir, fsstore.Options{}); !fault.Is(err, fault.DataDirInUse) {
		t.Errorf("a second owner: %v", err)
	}
	up, err := s.Upload(t.Context()) // its temporary file must stay
	if err != nil {
		t.Fatal(err)
	}
	before := storetest.Files(t, dir)
	reader := openIn(t, dir, fsstore.Options{ReadOnly: true})
	if body, err := reader.Open(t.Context(), key); err != nil {
		t.Errorf("reading: %v", err)
	} else if err := body.Close(); err != nil {
		t.Error(err)
	}
	if err := reader.Health(t.Context()); err != nil {
		t.Errorf("Health: %v", err)
	}
	_, created := reader.Create(t.Context(), key, nil)
	_, swapped := reader.Swap(t.Context(), key, []byte("x"), []byte("y"))
	_, uploaded := reader.Upload(t.Context())
	for call, err := range map[string]error{"Create": created, "Swap": swapped, "Upload": uploaded, "Delete": reader.Delete(t.Context(), key)} {
		if !fault.Is(err, fault.StoreFailed) {
			t.Errorf("%s of a reader: %v", call, err)
		}
	}
	if diff := cmp.Diff(before, storetest.Files(t, dir)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	for _, err := range []error{up.Abort(), reader.Close(), s.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	again := openIn(t, dir, fsstore.Options{})
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) { storetest.RunCheck(t, open, 5) }

func TestCopy(t *testing.T) { storetest.RunCopy(t, open, open, storetest.Every(61, 23)) }

func TestRewrapWithFaults(t *testing.T) { storetest.RunRewrap(t, open, storetest.Every(19, 7)) }

// Foreign objects in the folder are reported and do not disturb the rest of the check.
func TestCheckReportsUnknownObjects(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, fsstore.Options{})
	v := newVault(t, s)
	if _, err := v.Save(t.Context(), draft(firstID, []byte("data"))); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := "archives/" + strings.Repeat("a", 64)
	plant := map[string]snapshot.Kind{
		"users/Readme": snapshot.StrayObject, "users/" + place.Owner + "/.DS_Store": snapshot.StrayObject,
		"users/" + strings.Repeat("f", 32): snapshot.Unreadable, "archives/new\nline": snapshot.StrayObject, link: snapshot.Unreadable,
	}
	for name := range plant {
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, nil, 0o600)
		if name == link {
			err = errors.Join(os.Remove(path), os.Symlink(other, path))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]snapshot.Kind{}
	_, err := v.Check(t.Context(), snapshot.CheckOptions{ReadData: true}, func(f snapshot.Finding) error {
		got[f.Key] = f.Kind
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plant, got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
