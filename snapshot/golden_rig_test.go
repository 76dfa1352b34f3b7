package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
)

// golden maps folders below testdata/golden to the hash of all their files and names.
// Past versions wrote them once, and they must load forever. A change that needs other
// golden files breaks the format.
var golden = map[string]string{
	"v1":     "0a8c8367cd37f9f7472a32141c37248871cf6cbb5c6e67e234f174a19db6107e",
	"v1-mac": "67e4d54dac82661f9ef468c7428590191a66758d0f0de9451aac2f527881f43a",
	"v1.1":   "fbd07abb29d5b390740d7ac2ddd88d9df5eaca394636e90227f5636dbcabf583",
}

// goldenSnapshot is an entry of expected.json: the arguments of a Save.
type goldenSnapshot struct {
	Owner      string
	Session    string
	Scope      string
	ScopeID    string `json:"scope_id"`
	ID         string
	Mode       snapshot.Mode
	CreatedAt  time.Time `json:"created_at"`
	Recipients []string
	Archive    string
	Facts      map[string]any
	Private    json.RawMessage
	Entries    []goldenEntry
}

type goldenEntry struct {
	Name   string
	Mode   string // permission bits, or "folder"
	Time   int64  // seconds; 0 if there was none
	Size   int64
	SHA256 string
}

func (g goldenSnapshot) location() snapshot.Location {
	return snapshot.Location{Owner: g.Owner, Session: g.Session, Scope: g.Scope, ScopeID: g.ScopeID}
}

// goldenDir copies a golden data directory to a folder where it can be opened. It returns
// the expected contents.
func goldenDir(t *testing.T, name string) (dir string, want []goldenSnapshot) {
	t.Helper()
	from := filepath.Join("testdata/golden", name)
	dir = t.TempDir()
	sum := sha256.New()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || d.IsDir() {
			return os.MkdirAll(filepath.Join(dir, name), 0o700)
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum.Write(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(body), name))
		return os.WriteFile(filepath.Join(dir, name), body, 0o600) // git does not store this mode
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != golden[name] {
		t.Fatalf("the golden files were changed; their hash is %s", got)
	}
	body, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err == nil {
		err = json.Unmarshal(body, &want)
	}
	if err != nil || len(want) == 0 {
		t.Fatalf("expected.json: %d snapshots, %v", len(want), err)
	}
	return dir, want
}

func goldenVault(t *testing.T, dir string) *snapshot.Vault {
	t.Helper()
	keys, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	store, err := fsstore.Open(filepath.Join(dir, "snapshots"), fsstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return vaultOf(store, keys)
}
