package backup_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/backup"
	"github.com/stasisd/stasis/fault"
)

// contents are the files of the backups in these tests.
var contents = map[string]string{
	"stasis.db": "a catalogue", "keys/identity": "AGE-SECRET-KEY-1", "keys/archive-key": "00ff",
	"extensions/" + strings.Repeat("a", 64) + "/manifest.json": "{}",
	"snapshots/archives/ab": "sealed", "snapshots/users/o/sessions/s/x.json": "",
}

// write writes a backup with the contents.
func write(t *testing.T, target string, replace bool) (backup.Manifest, error) {
	t.Helper()
	w, err := backup.Begin(target, replace)
	if err != nil {
		return backup.Manifest{}, err
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	writeFiles(t, w.Dir(), contents)
	return w.Commit(t.Context(), backup.Manifest{StasisVersion: "test", CreatedAt: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), Keys: true, Archives: true, Missing: []string{}})
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, body := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// readFiles reads every file below a folder.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", at, info.Mode(), err)
		}
		raw, err := os.ReadFile(at)
		name, _ := filepath.Rel(dir, at)
		all[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// restored returns the contents as they are in a data directory.
func restored() map[string]string {
	want := map[string]string{}
	for name, body := range contents {
		want[strings.TrimPrefix(name, "keys/")] = body
	}
	return want
}

// What is written can be restored: from a folder, from one file, and from a file of the
// first version.
func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"folder", "file.tar.zst", "golden"} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), name)
			if name == "golden" {
				target = filepath.Join("testdata", "v1.tar.zst")
			} else if _, err := write(t, target, false); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			read := int64(0)
			m, err := backup.Restore(backup.WithProgress(t.Context(), func(n int) { read += int64(n) }), target, "", dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range m.Files {
				read -= 2 * f.Size // to verify the backup, and to restore it
			}
			if read != 0 {
				t.Errorf("the progress is off by %d bytes", read)
			}
			if m.FormatVersion != 1 || m.StasisVersion != "test" || !m.Keys || !m.Archives || len(m.Files) != len(contents) {
				t.Errorf("the manifest: %+v", m)
			}
			if diff := cmp.Diff(restored(), readFiles(t, dir)); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
			if _, err := backup.Restore(t.Context(), target, "", dir); !fault.Is(err, fault.Config) {
				t.Errorf("a restore into a directory that is not empty: %v", err)
			}
			if diff := cmp.Diff(restored(), readFiles(t, dir)); diff != "" {
				t.Errorf("after a refused restore (-want +got):\n%s", diff)
			}
		})
	}
}

// A backup replaces another one only with replace set, and never anything else.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"folder", "file.tar.zst"} {
		target := filepath.Join(dir, name)
		if _, err := write(t, target, false); err != nil {
			t.Fatal(err)
		}
		if _, err := write(t, target, false); !fault.Is(err, fault.Config) {
			t.Errorf("%s was overwritten: %v", name, err)
		}
		if _, err := write(t, target, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := backup.Verify(t.Context(), target); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(target + ".partial"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the partial folder is left: %v", name, err)
		}
	}
	other := filepath.Join(dir, "other")
	writeFiles(t, other, map[string]string{"mine": "mine"})
	if _, err := write(t, other, true); !fault.Is(err, fault.Config) {
		t.Errorf("a folder that is no backup was replaced: %v", err)
	}
}

// Of two backups to the same name, the second is refused.
func TestOneWriter(t *testing.T) {
	target := filepath.Join(t.TempDir(), "backup")
	w, err := backup.Begin(target, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Begin(target, false); !fault.Is(err, fault.Config) {
		t.Errorf("the second: %v", err)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
}

// Every changed byte and every truncation is damage, and a restore of it leaves no files.
func TestDamage(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "b.tar.zst")
	if _, err := write(t, whole, false); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged, dir := filepath.Join(t.TempDir(), "b.tar.zst"), t.TempDir()
	refused := func(what string, at int, body []byte) {
		t.Helper()
		if err := os.WriteFile(damaged, body, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backup.Restore(t.Context(), damaged, "", dir)
		if err == nil {
			return // some bits of zstd have no meaning; the files were right
		}
		if !fault.Is(err, fault.ArchiveDamaged) && !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s at %d: %v", what, at, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Fatalf("%s at %d left %v", what, at, left)
		}
	}
	for at := range raw {
		body := bytes.Clone(raw)
		body[at] ^= 1 << (at % 8)
		refused("a flipped bit", at, body)
		if held := readFiles(t, dir); len(held) > 0 {
			if diff := cmp.Diff(restored(), held); diff != "" {
				t.Fatalf("a flipped bit at %d was restored:\n%s", at, diff)
			}
			dir = t.TempDir()
		}
	}
	for at := range raw {
		refused("a truncation", at, raw[:at])
		if len(readFiles(t, dir)) > 0 {
			t.Fatalf("a truncation at %d was restored", at)
		}
	}
}

// A key that is not from the backup may be the operator's: a restore that is run again
// leaves the key and everything else where it is.
func TestInterruptedRestoreKeepsForeignKeys(t *testing.T) {
	target, dir := filepath.Join(t.TempDir(), "folder"), t.TempDir()
	if _, err := write(t, target, false); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{backup.WorkFolder + "/stasis.db": "half", "identity": "the operator's"})
	if _, err := backup.Restore(t.Context(), target, "", dir); !fault.Is(err, fault.Config) || !strings.Contains(fault.MessageOf(err), "identity") {
		t.Errorf("the error is %v", err)
	}
	for name, want := range map[string]string{"identity": "the operator's", backup.WorkFolder + "/stasis.db": "half"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is now %q, %v", name, got, err)
		}
	}
}

// A restore that was interrupted can be run again.
func TestInterruptedRestore(t *testing.T) {
	target, dir := filepath.Join(t.TempDir(), "folder"), t.TempDir()
	if _, err := write(t, target, false); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{backup.WorkFolder + "/stasis.db": "half", "snapshots/archives/old": "moved already", "identity": "AGE-SECRET-KEY-1"})
	if !backup.RestoreInterrupted(dir) {
		t.Error("RestoreInterrupted is false after an interrupted restore")
	}
	if _, err := backup.Restore(t.Context(), target, "", dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(restored(), readFiles(t, dir)); diff != "" || backup.RestoreInterrupted(dir) {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}
