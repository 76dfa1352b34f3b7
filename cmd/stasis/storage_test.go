//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Root does not write into the data directory of another user's daemon, which could not
// read the files afterwards.
func TestCheckOwner(t *testing.T) {
	dir := t.TempDir()
	if err := checkOwner(dir, 0); err != nil {
		t.Errorf("without a lock: %v", err)
	}
	lock := filepath.Join(dir, "lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := checkOwner(dir, 0); err != nil {
			t.Errorf("root's own: %v", err)
		}
		if err := os.Chown(lock, 4321, 4321); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkOwner(dir, 0); fault.CodeOf(err) != fault.Config || !strings.Contains(fault.MessageOf(err), "--data-dir: the daemon of "+dir+" runs as the user") {
		t.Errorf("got %v, want config that names the user", err)
	}
	if err := checkOwner(dir, 4321); err != nil {
		t.Errorf("another user than root: %v", err)
	}
}
