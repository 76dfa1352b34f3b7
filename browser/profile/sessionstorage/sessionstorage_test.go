package sessionstorage

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/state"
)

const a, b = "https://a.example/", "https://b.example/"

// written creates a profile whose tabs have the given areas, a map for each, in order.
func written(t *testing.T, areas ...state.Area) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	entries := map[string][]byte{"version": []byte("1")}
	for i, area := range areas {
		number := string(rune('0' + i))
		entries[prefixTab+strings.Repeat(number, guid)+"-"+area.StorageKey] = []byte(number)
		for _, item := range area.Items {
			var value []byte
			for _, unit := range utf16.Encode([]rune(item.Value)) {
				value = binary.LittleEndian.AppendUint16(value, unit)
			}
			entries[prefixItem+number+"-"+item.Key] = value
		}
	}
	if err := leveldb.Write(root, Folder, entries); err != nil {
		t.Fatal(err)
	}
	return root
}

func read(t *testing.T, root *os.Root) Contents {
	t.Helper()
	c, err := Read(t.Context(), root.FS())
	if err != nil || !c.Known() {
		t.Fatalf("%+v, %v", c, err)
	}
	return c
}

func area(key string, items ...string) state.Area {
	out := state.Area{StorageKey: key}
	for i := 0; i < len(items); i += 2 {
		out.Items = append(out.Items, state.Item{Key: items[i], Value: items[i+1]})
	}
	return out
}

func tab(areas ...state.Area) state.Tab { return state.Tab{Session: areas} }

// If a log is cut off, all items that differ from the reading are applied. Otherwise only
// missing items count, and only a large area without any item on disk is applied. Tabs
// with the same storage key are matched one by one.
func TestUnstored(t *testing.T) {
	large := strings.Repeat("v", minApplySize) // a value that Chrome takes long to write
	on := []state.Area{area(a, "k", "é😀", "n", "1"), area(a, "k", "two")}
	for name, test := range map[string]struct {
		on        []state.Area
		truncated bool
		tabs      []state.Tab
		want      []state.Unstored
	}{
		"all there":               {on, false, []state.Tab{tab(area(a, "k", "two")), tab(area(a, "k", "é😀", "n", "1"))}, nil},
		"all there, and cut":      {on, true, []state.Tab{tab(area(a, "k", "two")), tab(area(a, "k", "é😀", "n", "1"))}, nil},
		"set since":               {on, false, []state.Tab{tab(area(a, "k", "old", "n", "1"))}, nil},
		"set since, and cut":      {on, true, []state.Tab{tab(area(a, "k", "old", "n", "1"))}, []state.Unstored{{StorageKey: a, Items: 1, Apply: true}}},
		"not there":               {on, false, []state.Tab{tab(area(b, "k", "v", "l", "v"))}, []state.Unstored{{StorageKey: b, Items: 2}}},
		"not there, and cut":      {on, true, []state.Tab{tab(area(b, "k", "v", "l", "v"))}, []state.Unstored{{StorageKey: b, Items: 2, Apply: true}}},
		"large":                   {on, false, []state.Tab{tab(area(b, "k", large))}, []state.Unstored{{StorageKey: b, Items: 1, Apply: true}}},
		"large, another tab has":  {on, false, []state.Tab{tab(area(a, "x", large))}, []state.Unstored{{StorageKey: a, Items: 1}}},
		"of more tabs than there": {on[:1], false, []state.Tab{tab(area(a, "k", "é😀", "n", "1")), tab(area(a, "k", "é😀"))}, []state.Unstored{{StorageKey: a, Items: 1}}},
		"not there, not loaded":   {on, false, []state.Tab{{Unloaded: true, Session: []state.Area{area(b, "k", "v")}}}, []state.Unstored{{StorageKey: b, Items: 1, Apply: true}}},
		"another tab, not loaded": {on, false, []state.Tab{tab(area(b, "k", "v")), {Unloaded: true}}, []state.Unstored{{StorageKey: b, Items: 1}}},
		"no name":                 {on, true, []state.Tab{tab(area("https://b.example/^11^22", "k", "v"))}, []state.Unstored{{StorageKey: "https://b.example/^11^22", Items: 1}}},
		"a tab without any":       {on, false, []state.Tab{tab(area(a)), tab(area(a, "k", "two")), tab(area(a, "k", "é😀", "n", "1"))}, nil},
		"nothing on disk":         {nil, false, []state.Tab{tab(area(a, "k", large), area(b))}, []state.Unstored{{StorageKey: a, Items: 1, Apply: true}}},
	} {
		c := read(t, written(t, test.on...))
		c.Truncated = test.truncated
		if diff := cmp.Diff(test.want, c.Unstored(test.tabs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if c, err := Read(t.Context(), os.DirFS(t.TempDir())); err != nil || len(c.Unstored([]state.Tab{tab(area(a, "k", "v"))})) != 1 {
		t.Errorf("profile without sessionStorage: %+v, %v", c, err)
	}
	if got := (Contents{}).Unstored([]state.Tab{tab(area(a, "k", "v"))}); got != nil {
		t.Errorf("profile that was not read: %v", got)
	}
}

// Items that the site removed, and whose removal Chrome wrote, are not lost. A log that
// ends within a record loses items, wherever it ends.
func TestCutLog(t *testing.T) {
	root := written(t, area(a, "k", strings.Repeat("v", 3000), "n", "1"))
	log := filepath.Join(root.Name(), Folder, "000002.log")
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	tabs := []state.Tab{tab(area(a, "k", strings.Repeat("v", 3000), "n", "1"))}
	for _, length := range []int{len(whole) - 1, 4096, 8} {
		if err := os.WriteFile(log, whole[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		c := read(t, root)
		if diff := cmp.Diff([]state.Unstored{{StorageKey: a, Items: 2, Apply: true}}, c.Unstored(tabs)); diff != "" || !c.Truncated {
			t.Errorf("log of %d bytes: truncated %t (-want +got):\n%s", length, c.Truncated, diff)
		}
	}
	c := Contents{areas: map[string][]diskArea{a: {{items: map[string]string{}, removed: map[string]bool{"k": true, "n": true}}}}}
	if got := c.Unstored(tabs); got != nil {
		t.Errorf("written removals count as lost: %v", got)
	}
}

// Half of a surrogate pair is decoded as over CDP.
func TestDecode(t *testing.T) {
	for raw, want := range map[string]string{"a\x00\xe9\x00": "aé", "\x3d\xd8\x00\xdea\x00": "😀a", "\x3d\xd8a\x00": "\ufffda", "\x00\xde\x3d\xd8": "\ufffd\ufffd", "\x3d\xd8": "\ufffd"} {
		if got := decode([]byte(raw)); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

// One storage key is removed and the others stay unchanged.
func TestForget(t *testing.T) {
	root := written(t, area(a, "k", "v"), area(b, "k", "v", "l", "v"), area(a, "m", "v"))
	if done, err := Forget(t.Context(), root, map[string]bool{a: true}); err != nil || !done {
		t.Fatal(done, err)
	}
	if diff := cmp.Diff(map[string]int{b: 2}, read(t, root).Items()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A database that is too large for its values still has its keys read, and Forget leaves
// it unchanged.
func TestTooMuch(t *testing.T) {
	root := written(t)
	if err := root.RemoveAll(Folder); err != nil {
		t.Fatal(err)
	}
	owner := prefixTab + strings.Repeat("g", guid) + "-" + a
	if err := leveldb.Write(root, Folder, map[string][]byte{owner: []byte("0"), prefixItem + "0-k": make([]byte, leveldb.MaxBytes)}); err != nil {
		t.Fatal(err)
	}
	c := read(t, root)
	c.Truncated = true
	if diff := cmp.Diff([]state.Unstored{{StorageKey: a, Items: 1, Apply: true}}, c.Unstored([]state.Tab{tab(area(a, "k", "other", "l", "v"))})); diff != "" || c.hasValues {
		t.Errorf("values read: %t (-want +got):\n%s", c.hasValues, diff)
	}
	if done, err := Forget(t.Context(), root, map[string]bool{a: true}); err != nil || done || len(read(t, root).Items()) != 1 {
		t.Errorf("a database that cannot be read was changed: %t, %v", done, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := Read(over, root.FS()); !errors.Is(err, context.Canceled) || c.Known() {
		t.Errorf("after cancel: %+v, %v", c, err)
	}
}
