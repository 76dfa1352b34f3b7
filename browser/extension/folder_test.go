package extension

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Folders count too, because Chrome can create millions of nested ones.
func TestWalkIsBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }() // only a handle
	for before, ok := range map[int]bool{maxFiles - 2: true, maxFiles - 1: false} {
		w := walker{root: root, each: func(string, int64) error { return nil }, entries: before}
		if err := w.folder(t.Context(), "."); (err == nil) != ok || err != nil && !fault.Is(err, fault.TooLarge) {
			t.Errorf("after %d others: %v", before, err)
		}
	}
}
