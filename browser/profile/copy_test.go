package profile_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
)

// contents returns the files of an environment with their text.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	files, err := profile.Select(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		body, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name] = string(body)
	}
	return all
}

// updateUntilSettled updates a copy until every file is so old that a later write gets
// another time.
func updateUntilSettled(t *testing.T, c *profile.Copy, from string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		if _, err := c.Update(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		if behind, err := c.Behind(t.Context(), from); err != nil {
			t.Fatal(err)
		} else if !behind {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the copy is still behind after 20 s")
		}
	}
}

// A copy follows files that are written, replaced, renamed and removed, under the names
// used in archives, and copies nothing else.
func TestCopy(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	c := profile.NewCopy(to)
	step := func(what string, change func()) {
		t.Helper()
		was := c.Sum()
		change()
		if behind, err := c.Behind(t.Context(), from); err != nil || !behind {
			t.Errorf("%s: behind %t, %v", what, behind, err)
		}
		if _, err := c.Update(t.Context(), from); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(contents(t, from), contents(t, to)); diff != "" {
			t.Errorf("%s (-environment +copy):\n%s", what, diff)
		}
		if c.Sum() == was {
			t.Errorf("%s: the sum is the same", what)
		}
		updateUntilSettled(t, c, from)
		if n, err := c.Update(t.Context(), from); err != nil || n != 0 {
			t.Errorf("%s: %d unchanged bytes were copied, %v", what, n, err)
		}
	}
	step("all of it", func() {
		put(t, from, "Spare/Cookies", "jar")
		put(t, from, "Spare/Local Storage/leveldb/000003.log", "log")
		put(t, from, "Spare/Cache/data_0", "no part of it")
		put(t, from, "extensions/abcdefghijklmnopabcdefghijklmnop/tool", "x")
	})
	step("written in place, as long as before", func() { put(t, from, "Spare/Cookies", "raj") })
	step("replaced", func() {
		put(t, from, "Spare/Cookies.new", "new")
		if err := os.Rename(filepath.Join(from, "Spare/Cookies.new"), filepath.Join(from, "Spare/Cookies")); err != nil {
			t.Fatal(err)
		}
	})
	step("shorter", func() { put(t, from, "Spare/Local Storage/leveldb/000003.log", "") })
	step("removed and new", func() {
		if err := os.RemoveAll(filepath.Join(from, "Spare/Local Storage")); err != nil {
			t.Fatal(err)
		}
		put(t, from, "Spare/IndexedDB/a/b", "c")
	})
	if info, err := os.Stat(filepath.Join(to, "Default/Cookies")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// The time of a file that has just been written is not trusted, so the file is copied
// again. On a slow machine it may not be new any more, so there are several tries.
func TestCopyRecent(t *testing.T) {
	from := t.TempDir()
	c := profile.NewCopy(t.TempDir())
	for again := int64(0); again == 0; {
		put(t, from, "Default/Cookies", "jar")
		n, err := c.Update(t.Context(), from)
		if err == nil && n == 3 {
			again, err = c.Update(t.Context(), from)
		}
		if err != nil || n != 3 || again != 0 && again != 3 || t.Context().Err() != nil {
			t.Fatalf("%d and %d bytes were copied, %v", n, again, err)
		}
	}
}

// A compromised Chrome cannot make the daemon read files outside the profile, or write
// files outside the copy.
func TestCopyFollowsNoLinks(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	from, to := t.TempDir(), t.TempDir()
	put(t, from, "Default/Cookies", "jar")
	if err := os.Symlink(secret, filepath.Join(from, "Default/Login Data")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(to, "Default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(to, "Default/Cookies")); err != nil {
		t.Fatal(err)
	}
	_, err := profile.NewCopy(to).Update(t.Context(), from)
	if fault.CodeOf(err) != fault.SaveFailed {
		t.Errorf("%v", err)
	}
	if body, err := os.ReadFile(secret); err != nil || string(body) != "secret" {
		t.Errorf("%q, %v", body, err)
	}
	if _, err := os.Lstat(filepath.Join(to, "Default/Login Data")); !os.IsNotExist(err) {
		t.Errorf("the link was followed: %v", err)
	}
}

// After an update was canceled, the next one completes the copy.
func TestCopyCanceled(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put(t, from, "Default/Cookies", "jar")
	c := profile.NewCopy(to)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Update(over, from); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("%v", err)
	}
	if _, err := c.Update(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(to, "Default/Cookies")); err != nil {
		t.Error(err)
	}
	if _, err := c.Update(t.Context(), filepath.Join(from, "gone")); fault.CodeOf(err) != fault.SaveFailed {
		t.Errorf("%v", err)
	}
}

// endsAfter is a context that ends when Err has been called the given number of times.
type endsAfter struct {
	context.Context
	looks int
}

func (e *endsAfter) Err() error {
	if e.looks--; e.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// When the time is up, copying stops even within a large file. The next update copies all
// of it.
func TestCopyCanceledWithinFile(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put(t, from, "Default/Cookies", "")
	const size = 40 << 20
	if err := os.Truncate(filepath.Join(from, "Default/Cookies"), size); err != nil { // a sparse file
		t.Fatal(err)
	}
	c := profile.NewCopy(to)
	// The number of looks grows until the context ends within the file.
	var n int64
	for looks := 0; n == 0; looks++ {
		var err error
		if n, err = c.Update(&endsAfter{t.Context(), looks}, from); fault.CodeOf(err) != fault.Timeout {
			t.Fatalf("%d looks: %v", looks, err)
		}
	}
	if n >= size {
		t.Errorf("%d bytes of %d were copied", n, size)
	}
	if _, err := c.Update(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(to, "Default/Cookies")); err != nil || info.Size() != size {
		t.Errorf("%v, %v", info, err)
	}
}
