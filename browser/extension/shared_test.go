package extension_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
)

// sharing is a node with its folders.
type sharing struct {
	*extension.Shared
	copies, alone string
}

func openShared(t *testing.T, s *shelf) sharing {
	t.Helper()
	n := sharing{copies: t.TempDir(), alone: t.TempDir()}
	shared, err := extension.OpenShared(n.copies, n.alone, extension.NewSigned(s, testKey))
	if err != nil {
		t.Fatal(err)
	}
	n.Shared = shared
	return n
}

// copied checks what a copy of an extension returns.
func (n sharing) copied(t *testing.T, sha string, want fault.Code) {
	t.Helper()
	if err := n.Copy(t.Context(), sha, filepath.Join(t.TempDir(), "x")); fault.CodeOf(err) != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// What one node took, another has. After a delete on one, none has it, and the copies of
// others go.
func TestShared(t *testing.T) {
	s := newShelf()
	a, b := openShared(t, s), openShared(t, s)
	raw := zipOf(t, entry{name: "manifest.json", body: goodManifest})
	var is extension.Info
	if err := a.Put(t.Context(), bytes.NewReader(raw), atOnce, s.record(&is)); err != nil {
		t.Fatal(err)
	}
	a.copied(t, is.SHA256, "")
	if s.reads > 0 {
		t.Error("the node that took it has read it")
	}
	b.copied(t, is.SHA256, "")
	if err := b.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if names := entriesOf(t, b.copies); !slices.Equal(names, []string{is.SHA256}) {
		t.Errorf("after a sweep, B has %v", names)
	}

	if err := a.Delete(s.forget(is.SHA256)); err != nil {
		t.Error(err)
	}
	a.copied(t, is.SHA256, fault.ExtensionNotFound)
	if err := b.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	for _, n := range []sharing{a, b} {
		if left := entriesOf(t, n.copies); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	b.copied(t, is.SHA256, fault.ExtensionNotFound)
}

// An upload that is not recorded leaves nothing. While the catalogue is away, nothing is swept.
func TestSharedFails(t *testing.T) {
	s := newShelf()
	a := openShared(t, s)
	raw := zipOf(t, entry{name: "manifest.json", body: goodManifest})
	var is extension.Info
	away := fault.New(fault.CatalogueUnavailable, "test", "")
	s.fail = away
	if err := a.Put(t.Context(), bytes.NewReader(raw), atOnce, s.record(&is)); !errors.Is(err, away) {
		t.Errorf("put: %v", err)
	}
	if left := entriesOf(t, a.copies); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	s.fail = nil
	if err := a.Put(t.Context(), bytes.NewReader(raw), atOnce, s.record(&is)); err != nil {
		t.Fatal(err)
	}
	s.fail = away
	if err := a.Sweep(t.Context()); !errors.Is(err, away) {
		t.Errorf("sweep: %v", err)
	}
	a.copied(t, is.SHA256, "")
}

// A daemon that becomes a node adds the files of its uploads to the catalogue. Files of other
// catalogues stay where they are, and files that were changed are not added.
func TestAdopt(t *testing.T) {
	s := newShelf()
	a, b := openShared(t, s), openShared(t, s)
	before, err := extension.OpenStore(a.alone, nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(file string) (is extension.Info) {
		t.Helper()
		raw := zipOf(t, entry{name: "manifest.json", body: goodManifest}, entry{name: file})
		if err := before.Put(t.Context(), bytes.NewReader(raw), atOnce, s.record(&is)); err != nil {
			t.Fatal(err)
		}
		return is
	}
	plain, changed, foreign, stored := put("plain.js"), put("changed.js"), put("foreign.js"), put("stored.js")
	if err := os.WriteFile(filepath.Join(a.alone, changed.SHA256, "changed.js"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(s.records, foreign.SHA256)
	s.packed[stored.SHA256] = signed(stored.SHA256, pack(t, filepath.Join(a.alone, stored.SHA256)))
	s.records[strings.Repeat("0", 64)] = true

	lost, err := a.Adopt(t.Context())
	if !slices.Equal(lost, []string{strings.Repeat("0", 64)}) || !fault.Is(err, fault.StoreFailed) || !strings.Contains(err.Error(), changed.ID) {
		t.Errorf("lost: %v, error %v", lost, err)
	}
	for _, is := range []extension.Info{plain, stored} {
		a.copied(t, is.SHA256, "")
	}
	if s.reads > 0 {
		t.Error("the node has read what was on its disk")
	}
	b.copied(t, plain.SHA256, "")
	if err := a.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	want := []string{changed.SHA256, foreign.SHA256}
	slices.Sort(want)
	if left := entriesOf(t, a.alone); !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
	if again, err := b.Adopt(t.Context()); err != nil || len(again) != 2 { // it has neither of the two
		t.Errorf("another node: %v, %v", again, err)
	}

	// Files that only a copy has are added too.
	delete(s.packed, plain.SHA256)
	if _, err := b.Adopt(t.Context()); err != nil {
		t.Error(err)
	}
	openShared(t, s).copied(t, plain.SHA256, "")
}
