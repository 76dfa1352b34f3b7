package localstorage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/state"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func area(key string, pairs ...string) state.Area {
	a := state.Area{StorageKey: key, Items: []state.Item{}}
	for i := 0; i < len(pairs); i += 2 {
		a.Items = append(a.Items, state.Item{Key: pairs[i], Value: pairs[i+1]})
	}
	return a
}

func profile(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func writeAreas(t *testing.T, root *os.Root, at time.Time, areas ...state.Area) (lines []state.Component, rest []state.Area) {
	t.Helper()
	lines, rest, err := Write(t.Context(), root, areas, at)
	if err != nil {
		t.Fatal(err)
	}
	return lines, rest
}

func contents(t *testing.T, root *os.Root) Contents {
	t.Helper()
	c, err := Read(t.Context(), root.FS())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Write replaces all items of its storage keys and does not change others, not even those
// that no document can express.
func TestWrite(t *testing.T) {
	root := profile(t)
	half := []byte{formatUTF16, 'a', 0, 0x00, 0xd8} // half of a surrogate pair
	if err := root.Mkdir("Local Storage", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := leveldb.Write(root, Folder, map[string][]byte{
		keyVersion:                      []byte(version),
		itemKey("https://a.test", "k"):  half,
		itemKey("https://a.test", "no"): encode("longer"),
		itemKey("https://b.test", "k"):  half,
		prefixAccess + "https://b.test": encodeTime(noon),
	}); err != nil {
		t.Fatal(err)
	}
	lines, rest := writeAreas(t, root, noon, area("https://a.test/", "k", "a\ufffd", "new", "é"), area("https://c.test:8080/", "😀", "к", "", ""))
	if len(rest) != 0 || len(lines) != 2 || lines[0] != (state.Component{Name: state.ComponentLocalStorage, Origin: "https://a.test/", Saved: 2, Restored: 2}) {
		t.Errorf("%+v, %+v", lines, rest)
	}
	c := contents(t, root)
	want := []state.Area{area("https://a.test/", "k", "a\ufffd", "new", "é"), area("https://b.test/", "k", "a\ufffd"), area("https://c.test:8080/", "", "", "😀", "к")}
	if diff := cmp.Diff(want, c.Areas); diff != "" || c.Damage != "" {
		t.Errorf("%q (-want +got):\n%s", c.Damage, diff)
	}
	if got := c.Commits["https://c.test:8080/"]; !got.At.Equal(noon) || got.Bytes != Size(want[2]) {
		t.Errorf("%+v", got)
	}
	db, err := leveldb.Read(t.Context(), root.FS(), Folder, func([]byte) bool { return true }, true)
	if err != nil || string(db.Entries[itemKey("https://a.test", "k")]) != string(half) || len(db.Entries[prefixAccess+"https://b.test"]) == 0 {
		t.Errorf("an item that reads the same was written again: %v", err)
	}
	writeAreas(t, root, noon, area("https://a.test/"))
	if c := contents(t, root); len(c.Areas) != 2 || len(c.Commits) != 1 {
		t.Errorf("an area without items: %+v", c)
	}
}

// Write repairs a database that is damaged, cut off or not a folder, and keeps what could
// be read of it.
func TestWriteRepairs(t *testing.T) {
	for name, damage := range map[string]func(file string, b []byte) error{
		"cut":     func(file string, b []byte) error { return os.WriteFile(file, b[:len(b)-3], 0o600) },
		"damaged": func(file string, b []byte) error { b[8] ^= 1; return os.WriteFile(file, b, 0o600) },
		"a file": func(file string, b []byte) error {
			at := filepath.Dir(filepath.Dir(file))
			if err := os.RemoveAll(at); err != nil {
				return err
			}
			return os.WriteFile(at, b, 0o600)
		},
	} {
		root := profile(t)
		writeAreas(t, root, noon, area("https://a.test/", "k", "v"))
		file := filepath.Join(root.Name(), Folder, "000002.log")
		b, err := os.ReadFile(file)
		if err == nil {
			err = damage(file, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		if lines, _ := writeAreas(t, root, noon, area("https://b.test/", "k", "v")); len(lines) != 1 {
			t.Errorf("%s: %+v", name, lines)
		}
		if c := contents(t, root); c.Truncated || c.Damage != "" || len(c.Areas) != 1 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// No page would find a key in another spelling than Chrome's. Write leaves such keys to
// Chrome, and those that are not http: or https: origins.
func TestCanonical(t *testing.T) {
	for key, want := range map[string]bool{
		"https://a.example/": true, "http://localhost:8080/": true, "http://127.0.0.1:1/": true, "https://xa--b.example/": true,
		"https://A.example/": false, "https://a.example:443/": false, "http://a.example:80/": false, "https://a.example:080/": false,
		"http://127.1/": false, "http://0x7f.1/": false, "http://127.0.0.01/": false, "http://[::1]/": false, "https://bücher.example/": false,
		"https://xn--bcher-kva.example/": false, "https://a.example./": false, "https://a..example/": false, "https://u:p@a.example/": false,
		"file:///": false, "chrome-extension://abcdef/": false, "": false, "https://a.example/path/": false,
		"https://a.example/^0https://b.example": false, "https://a.example/\x00": false,
	} {
		root := profile(t)
		_, rest := writeAreas(t, root, noon, area(key, "k", "v"))
		if ok := len(rest) == 0; ok != want {
			t.Errorf("%q: written: %t", key, ok)
		}
		if c := contents(t, root); len(c.Areas) == 1 != want {
			t.Errorf("%q: %+v", key, c)
		}
	}
}

// A reading is unwritten if the disk has something else that is older. Something newer is
// a change by the site.
func TestUnwritten(t *testing.T) {
	read := []state.Area{area("https://a.test/", "k", "read", "l", "m")}
	for name, test := range map[string]struct {
		on   Contents
		lost bool
	}{
		"never written":           {Contents{Commits: map[string]Commit{}}, true},
		"the same":                {Contents{Areas: []state.Area{area("https://a.test/", "k", "read", "l", "m")}, Commits: map[string]Commit{"https://a.test/": {At: noon.Add(-time.Hour)}}}, false},
		"older":                   {Contents{Areas: []state.Area{area("https://a.test/", "k", "old")}, Commits: map[string]Commit{"https://a.test/": {At: noon.Add(-time.Hour)}}}, true},
		"newer":                   {Contents{Areas: []state.Area{area("https://a.test/", "k", "new")}, Commits: map[string]Commit{"https://a.test/": {At: noon.Add(time.Second)}}}, false},
		"emptied":                 {Contents{Areas: []state.Area{}, Commits: map[string]Commit{"https://a.test/": {Emptied: true}}}, false},
		"too much, the same size": {Contents{Commits: map[string]Commit{"https://a.test/": {Bytes: Size(read[0])}}}, false},
		"too much, another size":  {Contents{Commits: map[string]Commit{"https://a.test/": {Bytes: 1}}}, true},
		"not known":               {Contents{}, false},
	} {
		if got := test.on.Unwritten(read, noon); len(got) == 1 != test.lost {
			t.Errorf("%s: %v", name, got)
		}
	}
	on := Contents{Areas: []state.Area{area("https://b.test/", "k", "v")}, Commits: map[string]Commit{}}
	if got := on.Unwritten([]state.Area{area("https://b.test/"), area("https://c.test/"), area("https://d.test/^1nonce", "k", "v")}, noon); len(got) != 1 || got[0] != "https://b.test/" {
		t.Errorf("unwritten, of areas that are empty or have no name: %v", got)
	}
}

// If a database is too large to read, its commits are still read.
func TestReadTooMuch(t *testing.T) {
	root := profile(t)
	if err := root.Mkdir("Local Storage", 0o700); err != nil {
		t.Fatal(err)
	}
	entries := map[string][]byte{}
	for _, origin := range []string{"https://a.test", "https://b.test"} {
		entries[itemKey(origin, "k")] = make([]byte, leveldb.MaxBytes/2+1)
		entries[prefixWrite+origin] = encodeCommit(Commit{At: noon})
	}
	if err := leveldb.Write(root, Folder, entries); err != nil {
		t.Fatal(err)
	}
	c, err := Read(t.Context(), root.FS())
	if err == nil || c.Areas != nil || len(c.Commits) != 2 {
		t.Errorf("%v, %d areas, %v", err, len(c.Areas), c.Commits)
	}
	if lines, rest := writeAreas(t, root, noon, area("https://a.test/", "1", "v")); len(lines) != 0 || len(rest) != 1 {
		t.Errorf("%v, %v", lines, rest)
	}
}

func FuzzDecodeCommit(f *testing.F) {
	f.Add(encodeCommit(Commit{At: noon, Bytes: 13}))
	f.Fuzz(func(_ *testing.T, b []byte) { decodeCommit(b) })
}
