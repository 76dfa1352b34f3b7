package extension_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
)

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// An extension that was put is stored completely under its hash, once. A failure leaves
// nothing.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".part-of-a-dead-daemon"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := extension.OpenStore(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left := entriesOf(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	raw := zipOf(t, entry{name: "manifest.json", body: goodManifest}, entry{name: "a/b.js", body: "1"})
	var got extension.Info
	for range 2 {
		if err := s.Put(t.Context(), bytes.NewReader(raw), atOnce, func(i extension.Info, _ *io.SectionReader) (string, error) { got = i; return "", nil }); err != nil {
			t.Fatal(err)
		}
	}
	if names := entriesOf(t, dir); len(names) != 1 || names[0] != got.SHA256 {
		t.Errorf("stored: %v", names)
	}
	to := filepath.Join(t.TempDir(), "x", "y")
	if err := s.Copy(t.Context(), got.SHA256, to); err != nil {
		t.Fatal(err)
	}
	if copied, err := extension.Inspect(t.Context(), to); err != nil || copied != got {
		t.Errorf("copied: %+v %v", copied, err)
	}
	lost := errors.New("not recorded")
	other := zipOf(t, entry{name: "manifest.json", body: goodManifest})
	if err := s.Put(t.Context(), bytes.NewReader(other), atOnce, func(extension.Info, *io.SectionReader) (string, error) { return "", lost }); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
	if err := s.Put(t.Context(), bytes.NewReader(raw), atOnce, func(extension.Info, *io.SectionReader) (string, error) { return "", lost }); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
	if err := s.Put(t.Context(), bytes.NewReader([]byte("no zip")), atOnce, nil); !fault.Is(err, fault.InvalidExtension) {
		t.Errorf("%v", err)
	}
	if names := entriesOf(t, dir); len(names) != 1 || names[0] != got.SHA256 {
		t.Errorf("after failures: %v", names)
	}
	var next extension.Info
	if err := s.Put(t.Context(), bytes.NewReader(other), atOnce, func(i extension.Info, _ *io.SectionReader) (string, error) { next = i; return got.SHA256, nil }); err != nil {
		t.Error(err)
	}
	if names := entriesOf(t, dir); len(names) != 1 || names[0] != next.SHA256 {
		t.Errorf("after a replacement: %v", names)
	}
	got = next
	unanswered := fault.New(fault.CatalogueUnavailable, "test", "")
	if err := s.Put(t.Context(), bytes.NewReader(raw), atOnce, func(extension.Info, *io.SectionReader) (string, error) { return "", unanswered }); !errors.Is(err, unanswered) {
		t.Errorf("%v", err)
	}
	if names := entriesOf(t, dir); len(names) != 2 {
		t.Errorf("files that may be recorded: %v", names)
	}
	for _, sha := range []string{"..", "", "x"} {
		if err := s.Copy(t.Context(), sha, filepath.Join(t.TempDir(), "z")); !fault.Is(err, fault.StoreFailed) {
			t.Errorf("copy of %q: %v", sha, err)
		}
	}
	if err := s.Delete(func() (string, error) { return "", nil }); err != nil {
		t.Error(err)
	}
	if err := s.Delete(func() (string, error) { return got.SHA256, nil }); err != nil {
		t.Error(err)
	}
	if left := entriesOf(t, dir); len(left) != 1 {
		t.Errorf("after the delete: %v", left)
	}
	if err := s.Delete(func() (string, error) { return got.SHA256, nil }); err != nil {
		t.Errorf("files that are lost: %v", err)
	}
}

// atOnce is the turn of an upload that does not have to wait.
func atOnce(context.Context) (func(), error) { return func() {}, nil }
