package snapshot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

func loadKeys(t *testing.T, dir string) snapshot.Keys {
	t.Helper()
	keys, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// The first start creates both files, readable by their owner only. The next start loads
// the same keys, which open and name archives as before.
func TestKeysAreMadeOnce(t *testing.T) {
	dir := t.TempDir()
	first := loadKeys(t, dir)
	got := map[string]os.FileMode{}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := name.Info()
		if err != nil {
			t.Fatal(err)
		}
		got[name.Name()] = info.Mode()
	}
	if diff := cmp.Diff(map[string]os.FileMode{"identity": 0o600, "archive-key": 0o600}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	store := memstore.New(0, time.Now)
	save(t, vaultOf(store, first), draft(1, snapshot.Entry{Name: "a", Data: []byte("x")}))
	second := loadKeys(t, dir)
	if s, err := vaultOf(store, second).Open(t.Context(), place, id(1)); err != nil || s.Private == nil {
		t.Errorf("after a restart: %v", err)
	}
}

// A first start may die between any two steps, and the next start continues it. A file
// that is lost later is not created again.
func TestKeysAfterInterruption(t *testing.T) {
	good := t.TempDir()
	want := loadKeys(t, good).Recipients()
	tests := map[string]struct {
		files map[string]string // name → the valid file to copy
		same  bool              // the identity that was written is kept
		code  fault.Code
	}{
		"identity half made":     {files: map[string]string{"identity.new": ""}},
		"both written":           {files: map[string]string{"identity.new": "identity", "archive-key.new": "archive-key"}},
		"naming secret in place": {files: map[string]string{"identity.new": "identity", "archive-key": "archive-key"}, same: true},
		"identity lost":          {files: map[string]string{"archive-key": "archive-key"}, code: fault.IdentityMissing},
		"naming secret lost":     {files: map[string]string{"identity": "identity"}, code: fault.IdentityMissing},
		"identity is rubbish":    {files: map[string]string{"identity": "", "archive-key": "archive-key"}, code: fault.Config},
		"secret is rubbish":      {files: map[string]string{"identity": "identity", "archive-key": ""}, code: fault.Config},
	}
	for name, test := range tests {
		dir := t.TempDir()
		for to, from := range test.files {
			body := []byte("rubbish")
			if from != "" {
				var err error
				if body, err = os.ReadFile(filepath.Join(good, from)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, to), body, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		keys, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: dir})
		if test.code != "" {
			if !fault.Is(err, test.code) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s: %v, want %s", name, err, test.code)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if same := cmp.Equal(keys.Recipients(), want); same != test.same {
			t.Errorf("%s: the written identity was taken: %v", name, same)
		}
	}
}

// A key file that others can read, or that is a link, is refused.
func TestKeysExposed(t *testing.T) {
	for name, expose := range map[string]func(path string) error{
		"mode": func(path string) error { return os.Chmod(path, 0o640) },
		"link": func(path string) error {
			if err := os.Rename(path, path+".real"); err != nil {
				return err
			}
			return os.Symlink("identity.real", path)
		},
	} {
		dir := t.TempDir()
		loadKeys(t, dir)
		if err := expose(filepath.Join(dir, "identity")); err != nil {
			t.Fatal(err)
		}
		if _, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: dir}); !fault.Is(err, fault.Config) {
			t.Errorf("%s: %v, want config", name, err)
		}
	}
}
