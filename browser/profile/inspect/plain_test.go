package inspect

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/state"
)

// A named pipe in place of a file does not block a reading, and a store with one is
// reported as damaged.
func TestPipesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "Local Storage", "leveldb")
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(store, "CURRENT"), filepath.Join(dir, "Bookmarks")} {
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Inventory) == 0 || found.Inventory[0].Component != state.ComponentLocalStorage || found.Inventory[0].Damage == "" {
		t.Errorf("%+v", found.Inventory)
	}
}
