//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// The first start fixes the ID of a data directory. Another ID is refused while the directory has
// sessions, which only a node of the old ID saves.
func TestNodeID(t *testing.T) {
	dir := t.TempDir()
	first, err := nodeFlags{}.id(dir)
	if err != nil || !validNodeID(first) {
		t.Fatal(first, err)
	}
	for _, flags := range []nodeFlags{{}, {NodeID: first}} {
		if again, err := flags.id(dir); err != nil || again != first {
			t.Errorf("%q, %v, want %s", again, err, first)
		}
	}
	left := filepath.Join(dir, runFolder, "abcdefgh")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := (nodeFlags{NodeID: "b"}).id(dir); fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), first) {
		t.Errorf("with a session left: %v", err)
	}
	if again, err := (nodeFlags{}).id(dir); err != nil || again != first {
		t.Errorf("after the refusal: %q, %v, want %s", again, err, first)
	}
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}
	if id, err := (nodeFlags{NodeID: "b"}).id(dir); err != nil || id != "b" {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := (nodeFlags{}).id(dir); err != nil || id != "b" {
		t.Errorf("the new ID was not kept: %q, %v", id, err)
	}
}
