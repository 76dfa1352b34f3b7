package inspect

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
)

func TestOriginOf(t *testing.T) {
	for id, want := range map[string]string{
		"https_a.example_0":       "https://a.example/",
		"http_127.0.0.1_8080":     "http://127.0.0.1:8080/",
		"https_under_score.org_0": "https://under_score.org/",
		"nonsense":                "nonsense",
	} {
		if got := originOf(id); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}

// IDs of any length are decoded (the first byte of the prefix has their lengths).
// Indexes, metadata and truncated keys are not counted.
func TestIDBKind(t *testing.T) {
	for key, want := range map[string]string{
		"\x00\x00\x00\x00\xc9name":             state.ComponentIndexedDB,
		"\x00\x00\x00\x00\x64":                 "",
		"\x00\x01\x01\x01key":                  state.ComponentIndexedDBRecords,
		"\x00\x01\x01\x02key":                  "",
		"\x00\x01\x00\x00\x01":                 "",
		"\x24\x00\x01\x00\x01\x01key":          state.ComponentIndexedDBRecords,
		"\x24\x00\x01":                         "",
		"\xff\x00":                             "",
		"":                                     "",
		"\x00\x00\x00\x00":                     "",
		"\x20\x00\x01\x01\x01key of store one": state.ComponentIndexedDBRecords,
	} {
		if got := idbKind([]byte(key)); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
}

// Files that are not databases, JSON or regular files are reported as damaged. The rest
// of the profile is still read.
func TestInvalidFiles(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{
		"Preferences": `{"profile": [`, "Bookmarks": `[]`, "TransportSecurity": `{"sts": [{}, {}]}`,
		"Cookies": "no database", "Web Data": "", "IndexedDB/https_a.example_0.sqlite/db": "x",
		"IndexedDB/https_b.example_0.indexeddb.leveldb/CURRENT": "MANIFEST-000001\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "History")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "Login Data"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := state.Inventory{
		{Component: "autofill", Damage: state.NotWritten},
		{Component: "bookmarks", Damage: "the file is not JSON"},
		{Component: "cookies", Damage: "the database is damaged"},
		{Component: "hsts", Items: 2},
		{Component: "indexed_db", Uncounted: "its format is unknown"},
		{Component: "indexed_db", Origin: "https://b.example/", Damage: "its list of files is missing"},
		{Component: "indexed_db_records", Origin: "https://b.example/", Damage: "its list of files is missing"},
		{Component: "passwords", Damage: "the database is not a plain file, or empty"},
		{Component: "preferences", Damage: "the file is not JSON"},
	}
	if diff := cmp.Diff(want, p.Inventory); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzCacheIndex(f *testing.F) {
	f.Add([]byte("\x0a\x05\x12\x03dir\x1a\x12https://a.example/"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, folders, err := cacheIndex(b)
		for _, folder := range folders {
			if err == nil && filepath.IsAbs(folder) {
				t.Errorf("%q is an absolute path", folder)
			}
		}
	})
}
