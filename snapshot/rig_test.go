package snapshot_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"go.uber.org/goleak"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var place = snapshot.Location{
	Owner: "0123456789abcdef0123456789abcdef", Session: "s-1", Scope: "agent", ScopeID: "browser",
}

func id(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012x", n) }

var start = time.Date(2027, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func newIdentity(t testing.TB) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func vaultOf(store snapshot.Store, keys snapshot.Keys) *snapshot.Vault {
	return snapshot.NewVault(store, keys, snapshot.Options{Now: func() time.Time { return start }})
}

func newVault(t testing.TB) (*snapshot.Vault, *memstore.Store) {
	t.Helper()
	store := memstore.New(0, time.Now)
	return vaultOf(store, snapshot.NewKeys(newIdentity(t), [32]byte{1})), store
}

func save(t testing.TB, v *snapshot.Vault, d snapshot.Draft) snapshot.Snapshot {
	t.Helper()
	s, err := v.Save(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func draft(n int, entries ...snapshot.Entry) snapshot.Draft {
	return snapshot.Draft{
		ID: id(n), Location: place, Mode: snapshot.Filesystem, CreatedAt: start, Entries: entries,
		Facts:   map[string]any{"chrome": "156.0.8078.79", "cookies": 3.0},
		Private: json.RawMessage(`{"origins":["https://bank.example"]}`),
		AppData: json.RawMessage(`{"notes":["call the bank"]}`),
	}
}

// profile writes a small tree like that of a closed profile and lists it.
func profile(t testing.TB) (entries []snapshot.Entry, contents map[string]string) {
	t.Helper()
	dir := t.TempDir()
	contents = map[string]string{
		"Default/Preferences": `{"session":{}}`, "Default/Network/Cookies": strings.Repeat("cookie", 9000),
		"Default/empty": "", "Default/ünï code " + strings.Repeat("x", 120): "long", "Default/script": "#!",
	}
	entries = append(entries, snapshot.Entry{Name: "Default/empty folder", Mode: fs.ModeDir})
	for name, content := range contents {
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o640)
		if name == "Default/script" {
			mode = 0o755
		}
		entries = append(entries, snapshot.Entry{Name: name, Path: path, Mode: mode})
	}
	entries = append(entries, snapshot.Entry{Name: "state.json", Data: []byte(`{"schema_version":"1"}`)})
	return entries, contents
}

// tree reads the files below dir; a folder's content is "/".
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if d.IsDir() {
			got[name] = "/"
			return nil
		}
		body, err := os.ReadFile(path)
		got[name] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
