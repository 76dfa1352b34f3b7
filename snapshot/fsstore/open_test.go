package fsstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot/fsstore"
)

// fill creates folders (names that end with a slash) and files in dir.
func fill(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o700)
		if err == nil && strings.HasSuffix(name, "/") {
			err = os.MkdirAll(at, 0o700)
		} else if err == nil {
			err = os.WriteFile(at, []byte(name), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tree lists everything below dir, including folders.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A folder with other contents is refused, and nothing in it changes.
func TestOpenRefusesOthersFolders(t *testing.T) {
	const upload = "tmp/ABCDEFGHIJKLMNOPQRSTUVWX23"
	for name, names := range map[string][]string{
		"a root folder":   {"etc/passwd", upload, "tmp/work", "lock"},
		"a home":          {".bashrc"},
		"files as names":  {"users", "archives"},
		"a new disk, ...": {"lost+found/", "notes"},
	} {
		dir := t.TempDir()
		fill(t, dir, names...)
		before := tree(t, dir)
		if _, err := fsstore.Open(dir, fsstore.Options{}); !fault.Is(err, fault.Config) || !strings.Contains(fault.MessageOf(err), "neither empty nor a snapshot store") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
	for name, names := range map[string][]string{
		"empty": nil, "a new disk": {"lost+found/"}, "never written to": {"lock", "tmp/"},
		"archives alone": {"archives/x", "notes"}, "documents alone": {"users/", "notes"},
	} {
		dir := t.TempDir()
		fill(t, dir, names...)
		if err := openIn(t, dir, fsstore.Options{}).Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Files in tmp that no upload created stay.
func TestSweepRemovesOnlyUploads(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "tmp/ABCDEFGHIJKLMNOPQRSTUVWX23", "tmp/ZBCDEFGHIJKLMNOPQRSTUVWX23/", "tmp/YBCDEFGHIJKLMNOPQRSTUVWX23/x",
		"tmp/ABCDEFGHIJKLMNOPQRSTUVWX2", "tmp/abcdefghijklmnopqrstuvwx23", "tmp/ABCDEFGHIJKLMNOPQRSTUVWX234", "tmp/ABCDEFGHIJKLMNOPQRSTUVWX18", "tmp/work/", "tmp/.X11")
	if err := os.Symlink("work", filepath.Join(dir, "tmp/XBCDEFGHIJKLMNOPQRSTUVWX23")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, filepath.Join(dir, "tmp"))
	if err := openIn(t, dir, fsstore.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, name := range before {
		if name != "/ABCDEFGHIJKLMNOPQRSTUVWX23" {
			want = append(want, name)
		}
	}
	if diff := cmp.Diff(want, tree(t, filepath.Join(dir, "tmp"))); diff != "" {
		t.Errorf("-want +left:\n%s", diff)
	}
}
