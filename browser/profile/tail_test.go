package profile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
)

func TestInTail(t *testing.T) {
	for name, want := range map[string]bool{
		"Default/Service Worker/CacheStorage/0a1b/5f0e/x_0":                      true,
		"Default/Service Worker/CacheStorage/0a1b/5f0e/index-dir/the-real-index": true,
		"Default/WebStorage/7/CacheStorage/5f0e/x_0":                             true,
		"Default/Service Worker/CacheStorage/0a1b/index.txt":                     false,
		"Default/WebStorage/7/CacheStorage/index.txt":                            false,
		"Default/Service Worker/ScriptCache/0a1b/5f0e/x_0":                       false,
		"Default/WebStorage/7/IndexedDB/indexeddb.leveldb/1.log":                 false,
		"Default/IndexedDB/a/CacheStorage/b/c":                                   false,
		"extensions/a/Service Worker/CacheStorage/b/c":                           false,
		"state.json": false,
	} {
		if InTail(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}

// Only caches of some size are a tail.
func TestMarkTail(t *testing.T) {
	const cached, other = "Default/Service Worker/CacheStorage/0a1b/5f0e/x_0", "Default/Cookies"
	for size, want := range map[int64]bool{minTail - 1: false, minTail: true} {
		files := []File{{Name: other, Size: minTail}, {Name: cached, Size: size}}
		markTail(files)
		if files[0].InTail || files[1].InTail != want {
			t.Errorf("%d bytes: %+v", size, files)
		}
	}
}

// unreadable is a file system with a folder that cannot be read.
type unreadable struct {
	fstest.MapFS
	folder string
}

func (u unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == u.folder {
		return nil, fs.ErrPermission
	}
	return u.MapFS.ReadDir(name)
}

func TestCacheFolders(t *testing.T) {
	files := fstest.MapFS{
		"Default/Service Worker/CacheStorage/0a1b/index.txt": {},
		"Default/Service Worker/CacheStorage/a file":         {},
		"Default/WebStorage/7/CacheStorage/index.txt":        {},
		"Default/WebStorage/8/IndexedDB/x":                   {},
		"Default/WebStorage/QuotaManager":                    {},
	}
	got, err := CacheFolders(files, Default)
	if diff := cmp.Diff([]string{"Service Worker/CacheStorage/0a1b", "WebStorage/7/CacheStorage"}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := CacheFolders(fstest.MapFS{}, Default); len(got) != 0 || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	for _, folder := range []string{"Default/Service Worker/CacheStorage", "Default/WebStorage", "Default/WebStorage/7"} {
		if _, err := CacheFolders(unreadable{files, folder}, Default); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s cannot be read: %v", folder, err)
		}
	}
}

// Empty journals of databases are left out of an archive. An extension's files are not: it may
// name them freely.
func TestEmptyJournals(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{
		"Default/Cookies": "db", "Default/Cookies-journal": "", "Default/History-journal": "unfinished",
		"Default/Extensions/a/x-journal": "", "extensions/abcdefghijklmnopabcdefghijklmnop/x-journal": "",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(body), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Select(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	want := []string{"Default/Cookies", "Default/Extensions/a/x-journal", "Default/History-journal", "extensions/abcdefghijklmnopabcdefghijklmnop/x-journal"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// An environment whose tail is not in place cannot be saved.
func TestIncomplete(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{Default, Unpacking} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, selected := Select(t.Context(), dir)
	for what, err := range map[string]error{"Select": selected, "UseDefaultFolder": UseDefaultFolder(dir)} {
		if !errors.Is(err, ErrIncomplete) || !fault.Is(err, fault.SaveFailed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
