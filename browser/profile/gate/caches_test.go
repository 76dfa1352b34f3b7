package gate

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
)

// The caches of an origin and of a bucket, by their folders in a profile.
const (
	ofOrigin = "Service Worker/CacheStorage/0123"
	ofBucket = "WebStorage/7/CacheStorage"
)

// held returns a user data directory whose environment has entered the profile of a running
// Chrome, while its caches are being unpacked.
func held(t *testing.T) (string, *CacheGates) {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{ofOrigin, ofBucket} {
		write(t, dir, "Default/"+folder+"/index.txt", "index of "+folder)
		write(t, dir, "Unpacking/Default/"+folder+"/5f/x_0", "entry")
	}
	write(t, dir, "Default/Service Worker/CacheStorage/damaged/other", "no index")
	c, err := CreateCacheGates(dir)
	if err == nil {
		err = os.Rename(filepath.Join(dir, "Default"), filepath.Join(dir, "Spare"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return dir, c
}

// A reader of an index waits until the caches are in place. Later readers find a file.
func TestCaches(t *testing.T) {
	dir, c := held(t)
	pipe := filepath.Join(dir, "Spare", ofOrigin, "index.txt")
	waiting, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a reader that comes before the caches
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(waiting)
	if err := errors.Join(err, waiting.Close()); err != nil || string(got) != "index of "+ofOrigin {
		t.Errorf("the waiting reader got %q, %v", got, err)
	}
	for _, folder := range []string{ofOrigin, ofBucket} {
		if body := read(t, dir, "Spare", folder, "index.txt"); body != "index of "+folder {
			t.Errorf("%s: %q", folder, body)
		}
		if body := read(t, dir, "Spare", folder, "5f/x_0"); body != "entry" {
			t.Errorf("%s: %q", folder, body)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, profile.Unpacking)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the environment still counts as incomplete: %v", err)
	}
}

// What Chrome did to the folders meanwhile: it may remove them, and then their caches stay
// removed. Anything else is an error, after which the environment stays incomplete. Nothing
// is written outside of the user data directory.
func TestCachesThatChanged(t *testing.T) {
	outside := t.TempDir()
	for name, test := range map[string]struct {
		change func(folder string) error
		fails  bool
	}{
		"removed":        {func(folder string) error { return os.RemoveAll(folder) }, false},
		"index replaced": {func(folder string) error { return replace(filepath.Join(folder, "index.txt"), "own") }, true},
		"same cache":     {func(folder string) error { return os.Mkdir(filepath.Join(folder, "5f"), 0o700) }, true},
		"pipe filled":    {func(folder string) error { return fillPipeOf(t, filepath.Join(folder, "index.txt")) }, true},
		"a link leads out": {func(folder string) error {
			return errors.Join(os.RemoveAll(folder), os.Symlink(outside, folder))
		}, true},
	} {
		dir, c := held(t)
		if err := test.change(filepath.Join(dir, "Spare", ofOrigin)); err != nil {
			t.Fatal(err)
		}
		err := c.Open()
		if test.fails != fault.Is(err, fault.BrowserFailed) || test.fails != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		_, incomplete := os.Lstat(filepath.Join(dir, profile.Unpacking))
		if test.fails != (incomplete == nil) {
			t.Errorf("%s: the environment's mark: %v", name, incomplete)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
			t.Errorf("%s: outside are %v, %v", name, entries, err)
		}
		if !test.fails {
			if _, err := os.Lstat(filepath.Join(dir, "Spare", ofOrigin)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: the caches came back: %v", name, err)
			}
		}
	}
}

// fillPipeOf fills a pipe as a Chrome could that has been taken over, and keeps it open.
func fillPipeOf(t *testing.T, pipe string) error {
	file, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = file.Close() })
	for err == nil {
		_, err = syscall.Write(int(file.Fd()), make([]byte, 4096))
	}
	if errors.Is(err, syscall.EAGAIN) {
		return nil
	}
	return err
}

func replace(file, body string) error {
	return errors.Join(os.Remove(file), os.WriteFile(file, []byte(body), 0o600))
}

// Without gates, the caches are in the profile before Chrome opens it.
func TestPlaceCaches(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "Default/"+ofOrigin+"/index.txt", "index")
	write(t, dir, "Unpacking/Default/"+ofOrigin+"/5f/x_0", "entry")
	write(t, dir, "Unpacking/Default/"+ofBucket+"/6f/y_0", "no index")
	if err := PlaceCaches(dir); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, "Default", ofOrigin, "5f/x_0") + read(t, dir, "Default", ofBucket, "6f/y_0"); got != "entryno index" {
		t.Errorf("%q", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, profile.Unpacking)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the environment still counts as incomplete: %v", err)
	}
}

// An index that does not fit into a pipe is found before it gets a gate.
func TestCachesTooLarge(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "Default/"+ofBucket+"/index.txt", strings.Repeat("i", maxFile))
	if CachesTooLarge(os.DirFS(dir)) {
		t.Error("the index fits")
	}
	write(t, dir, "Default/"+ofOrigin+"/index.txt", strings.Repeat("i", maxFile+1))
	if !CachesTooLarge(os.DirFS(dir)) {
		t.Error("the index does not fit")
	}
}
