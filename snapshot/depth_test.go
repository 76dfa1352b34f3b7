package snapshot_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// The daemon restores its own snapshots whatever the depth of their folders, and the
// check before the save accepts them. A foreign archive with such folders is refused.
func TestDeepFolders(t *testing.T) {
	v, _ := newVault(t)
	deep := "Default/" + strings.Repeat("a/", 500) + "f"
	if err := (snapshot.Limits{}).CheckNames(slices.Values([]string{deep})); err != nil {
		t.Errorf("the check before the save: %v", err)
	}
	s := save(t, v, draft(1, snapshot.Entry{Name: deep, Data: []byte("x")}))
	dst := filepath.Join(t.TempDir(), "to")
	if _, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("x", tree(t, dst)[deep]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	archive, err := v.OpenArchive(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(archive); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	foreign, err := snapshot.OpenForeign(fileOf(t, plain.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := foreign.Names(t.Context(), snapshot.Limits{}); !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), "32 elements") {
		t.Errorf("foreign archive: %v", err)
	}
}
