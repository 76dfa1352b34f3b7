package snapshot_test

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if h.Mode == 0 {
			h.Mode = 0o4777
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1} }

// Everything that a profile never holds is refused. Nothing remains, neither inside the
// folder nor beside it.
func TestHostileArchives(t *testing.T) {
	many := make([]tar.Header, 11)
	for i := range many {
		many[i] = file(strings.Repeat("a", i+1))
	}
	big := file("big")
	big.Size = 101
	tests := map[string]struct {
		headers []tar.Header
		says    string
	}{
		"parent":            {[]tar.Header{file("ok"), file("../evil")}, "clean relative path"},
		"inner parent":      {[]tar.Header{file("a/../../evil")}, "clean relative path"},
		"absolute":          {[]tar.Header{file("/tmp/evil")}, "clean relative path"},
		"dot":               {[]tar.Header{{Name: "./", Typeflag: tar.TypeDir}}, "clean relative path"},
		"unclean":           {[]tar.Header{file("a//b")}, "clean relative path"},
		"control":           {[]tar.Header{file("a\nb")}, "clean relative path"},
		"long":              {[]tar.Header{file(strings.Repeat("a", 256))}, "clean relative path"},
		"symlink":           {[]tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, "neither a file nor a folder"},
		"through symlink":   {[]tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, file("l/evil")}, "neither a file nor a folder"},
		"hard link":         {[]tar.Header{file("a"), {Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}}, "neither a file nor a folder"},
		"device":            {[]tar.Header{{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}, "neither a file nor a folder"},
		"block device":      {[]tar.Header{{Name: "d", Typeflag: tar.TypeBlock}}, "neither a file nor a folder"},
		"fifo":              {[]tar.Header{{Name: "f", Typeflag: tar.TypeFifo}}, "neither a file nor a folder"},
		"twice":             {[]tar.Header{file("a"), file("a")}, "a duplicate name"},
		"file and folder":   {[]tar.Header{file("a"), {Name: "a/", Typeflag: tar.TypeDir}}, "a duplicate name"},
		"below a file":      {[]tar.Header{file("a"), file("a/b")}, "below a file"},
		"over a folder":     {[]tar.Header{file("a/b"), file("a")}, "with the same name"},
		"too many":          {many, "more entries"},
		"too big":           {[]tar.Header{big}, "more bytes"},
		"too big together":  {[]tar.Header{{Name: "a", Size: 60, Typeflag: tar.TypeReg}, {Name: "b", Size: 60, Typeflag: tar.TypeReg}}, "more bytes"},
		"rejected, but bad": {[]tar.Header{{Name: "rejected/l", Typeflag: tar.TypeSymlink, Linkname: "x"}}, "neither a file nor a folder"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v, _ := newVault(t)
			s := v.Plant(t, place, id(1), tarOf(t, test.headers...), len(test.headers))
			around := t.TempDir()
			dst := filepath.Join(around, "dst")
			_, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{
				Limits: snapshot.Limits{Entries: 10, Bytes: 100},
				Accept: func(name string) bool { return !strings.HasPrefix(name, "rejected") },
			})
			if !fault.Is(err, fault.ArchiveDamaged) || !strings.Contains(fault.MessageOf(err), test.says) {
				t.Errorf("%v, want archive_damaged saying %q", err, test.says)
			}
			if left := tree(t, around); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A tar is read only up to the length in its document. So a decompression bomb costs what
// the document admits, and at most the limits.
func TestDecompressionBombs(t *testing.T) {
	v, _ := newVault(t)
	bomb := tarOf(t, tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: 64 << 20})
	s := v.Plant(t, place, id(1), bomb, 1)
	dst := filepath.Join(t.TempDir(), "dst")
	_, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{Limits: snapshot.Limits{Entries: 1, Bytes: 1 << 20}})
	if !fault.Is(err, fault.ArchiveDamaged) || !strings.Contains(fault.MessageOf(err), "more bytes") {
		t.Errorf("a file over the limit: %v", err)
	}
	s.Archive.TarSize = 1 << 20
	if err := v.Verify(t.Context(), s); !fault.Is(err, fault.ArchiveDamaged) || !strings.Contains(fault.MessageOf(err), "longer than") {
		t.Errorf("a tar longer than its document says: %v", err)
	}
	state := v.Plant(t, place, id(1), tarOf(t, tar.Header{Name: "state.json", Typeflag: tar.TypeReg, Size: snapshot.MaxKept + 1}), 1)
	_, err = v.Unpack(t.Context(), state, dst, snapshot.UnpackOptions{Keep: []string{"state.json"}})
	if !fault.Is(err, fault.ArchiveDamaged) || !strings.Contains(fault.MessageOf(err), "state document") {
		t.Errorf("a huge state document: %v", err)
	}
}

// A tar without its trailer, or with one entry more or less, does not match its document.
func TestTarDiffersFromDocument(t *testing.T) {
	v, _ := newVault(t)
	body := tarOf(t, file("a"), file("b"))
	long := tarOf(t, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 200})
	dst := t.TempDir()
	for name, s := range map[string]snapshot.Snapshot{
		"one entry less": v.Plant(t, place, id(1), body, 3),
		"one entry more": v.Plant(t, place, id(1), body, 1),
		"cut in a body":  v.Plant(t, place, id(1), long[:512+100], 1),
	} {
		if _, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{}); !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left := tree(t, dst); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Modes are reduced to the owner's bits, and setuid is removed.
func TestHostileModes(t *testing.T) {
	v, _ := newVault(t)
	s := v.Plant(t, place, id(1), tarOf(t, file("a")), 1)
	dst := t.TempDir()
	if _, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dst, "a")); err != nil || info.Mode() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A file or link that already exists in the folder is not written to, followed or
// removed.
func TestUnpackOverExistingFiles(t *testing.T) {
	v, _ := newVault(t)
	s := v.Plant(t, place, id(1), tarOf(t, file("a/b"), file("c")), 2)
	around := t.TempDir()
	for name, occupy := range map[string]func(dst string) error{
		"file":        func(dst string) error { return os.WriteFile(filepath.Join(dst, "c"), []byte("mine"), 0o600) },
		"link":        func(dst string) error { return os.Symlink("/etc/passwd", filepath.Join(dst, "c")) },
		"folder link": func(dst string) error { return os.Symlink(around, filepath.Join(dst, "a")) },
	} {
		dst := t.TempDir()
		if err := occupy(dst); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadDir(dst)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{}); !fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v, want internal", name, err)
		}
		after, err := os.ReadDir(dst)
		if err != nil || len(after) != len(before) || after[0].Name() != before[0].Name() {
			t.Errorf("%s: the folder holds %v, held %v (%v)", name, after, before, err)
		}
	}
	if diff := cmp.Diff(map[string]string{}, tree(t, around)); diff != "" {
		t.Errorf("something was written through the link:\n%s", diff)
	}
}

// A cancelled call returns timeout and leaves nothing.
func TestCancelled(t *testing.T) {
	v, store := newVault(t)
	s := save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	ctx, cancel := context.WithCancel(t.Context())
	dst := filepath.Join(t.TempDir(), "dst")
	_, err := v.Unpack(ctx, s, dst, snapshot.UnpackOptions{Accept: func(string) bool { cancel(); return true }})
	if !fault.Is(err, fault.Timeout) {
		t.Errorf("Unpack: %v, want timeout", err)
	}
	if _, err := os.Lstat(dst); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
	if _, err := v.Save(ctx, draft(2, snapshot.Entry{Name: "a", Data: []byte("b")})); !fault.Is(err, fault.Timeout) {
		t.Errorf("Save: %v, want timeout", err)
	}
	if names, err := store.List(t.Context(), snapshot.ArchiveFolder(), 10, ""); err != nil || len(names) != 1 {
		t.Errorf("archives: %q, %v", names, err)
	}
}
