package snapshot_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// zipOf returns a zip with the contents that tarOf puts into a tar.
func zipOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, h := range headers {
		zh := &zip.FileHeader{Name: h.Name, Method: zip.Deflate}
		zh.SetMode(h.FileInfo().Mode())
		body, err := w.CreateHeader(zh)
		if err != nil {
			t.Fatal(err)
		}
		content := bytes.Repeat([]byte("x"), int(h.Size))
		if h.Typeflag == tar.TypeSymlink {
			content = []byte(h.Linkname)
		}
		if _, err := body.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipOf(t testing.TB, plain []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstdOf(t testing.TB, plain []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(plain, nil)
}

func openForeign(t testing.TB, content []byte) (*snapshot.Foreign, error) {
	t.Helper()
	return snapshot.OpenForeign(fileOf(t, content))
}

// fileOf writes an upload to disk.
func fileOf(t testing.TB, content []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func sameName(name string) string { return name }

// Archives of all formats with the same contents give the same result. Entries without a
// place are skipped unchecked.
func TestForeign(t *testing.T) {
	headers := []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "./top/", Typeflag: tar.TypeDir, Mode: 0o755}, file("./top/a"), file("top/b/c"),
		{Name: "top/lock", Typeflag: tar.TypeSymlink, Linkname: "host-1"},
	}
	plain := tarOf(t, headers...)
	for kind, content := range map[string][]byte{
		"tar": plain, "tar.gz": gzipOf(t, plain), "tar.zst": zstdOf(t, plain), "zip": zipOf(t, headers...),
	} {
		t.Run(kind, func(t *testing.T) {
			f, err := openForeign(t, content)
			if err != nil {
				t.Fatal(err)
			}
			names, err := f.Names(t.Context(), snapshot.DefaultLimits)
			if diff := cmp.Diff([]string{"top", "top/a", "top/b/c", "top/lock"}, names); err != nil || diff != "" {
				t.Errorf("names: %v\n%s", err, diff)
			}
			if again, err := f.Names(t.Context(), snapshot.Limits{}); err != nil || !slices.Equal(again, names) {
				t.Errorf("names within the default limits: %v, %v", again, err)
			}
			dst := filepath.Join(t.TempDir(), "out")
			out, err := f.Unpack(t.Context(), dst, snapshot.UnpackOptions{Keep: []string{"b/c"}}, func(name string) string {
				below, _ := strings.CutPrefix(name, "top/")
				return map[string]string{"a": "a", "b/c": "b/c"}[below]
			})
			if err != nil || out.Entries != 2 || string(out.Kept["b/c"]) != "x" {
				t.Errorf("unpacked: %+v, %v", out, err)
			}
			got, err := os.ReadFile(filepath.Join(dst, "a"))
			if err != nil || string(got) != "x" {
				t.Errorf("a: %q, %v", got, err)
			}
		})
	}
}

// The rules of the daemon's own archives hold for each format.
func TestHostileForeign(t *testing.T) {
	big := file("big")
	big.Size = 101
	link := tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}
	for name, test := range map[string]struct {
		content []byte
		says    string
	}{
		"nothing":       {nil, "the file is not an archive"},
		"text":          {[]byte("hello"), "the file is not an archive"},
		"cut zip":       {zipOf(t, file("a"))[:40], "the archive is damaged"},
		"cut tar":       {tarOf(t, tar.Header{Name: "a", Size: 60, Typeflag: tar.TypeReg})[:540], "the archive is damaged"},
		"cut gzip":      {gzipOf(t, tarOf(t, file("a")))[:30], "the archive is damaged"},
		"no zstd":       {append([]byte{0x28, 0xb5, 0x2f, 0xfd}, "hello"...), "the archive is damaged"},
		"tar parent":    {tarOf(t, file("../evil")), "the archive holds a name that is not a clean relative path"},
		"zip parent":    {zipOf(t, file("a/../../evil")), "the archive holds a name that is not a clean relative path"},
		"zip absolute":  {zipOf(t, file("/evil")), "the archive holds a name that is not a clean relative path"},
		"zip dot":       {zipOf(t, file("././evil")), "the archive holds a name that is not a clean relative path"},
		"tar link":      {tarOf(t, link), "neither a file nor a folder"},
		"zip link":      {zipOf(t, link), "neither a file nor a folder"},
		"zip twice":     {zipOf(t, file("a"), file("a")), "a duplicate name"},
		"zip big":       {zipOf(t, big), "more bytes than allowed"},
		"zip many":      {zipOf(t, file("a"), file("b"), file("c")), "more entries than allowed"},
		"tar many":      {tarOf(t, file("a"), file("b"), file("c")), "more entries than allowed"},
		"long gzip":     {gzipOf(t, tarOf(t, tar.Header{Name: "skip", Typeflag: tar.TypeReg, Size: 1 << 20})), "more bytes than allowed"},
		"zip encrypted": {encrypted(t), "the archive is encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			f, err := openForeign(t, test.content)
			if err == nil {
				_, err = f.Unpack(t.Context(), filepath.Join(around, "in"), snapshot.UnpackOptions{Limits: snapshot.Limits{Entries: 2, Bytes: 100}},
					func(name string) string {
						if name == "skip" {
							return ""
						}
						return name
					})
			}
			if !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
			left, err := os.ReadDir(around)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// encrypted returns a zip whose entry is marked as encrypted.
func encrypted(t *testing.T) []byte {
	content := zipOf(t, file("a"))
	for _, header := range []struct{ magic, flags int }{{bytes.Index(content, []byte("PK\x03\x04")), 6}, {bytes.Index(content, []byte("PK\x01\x02")), 8}} {
		content[header.magic+header.flags] |= 1
	}
	return content
}

// No input writes outside the folder, and an error leaves nothing in it.
func FuzzForeign(f *testing.F) {
	headers := []tar.Header{file("a"), {Name: "d/", Typeflag: tar.TypeDir}, file("d/b")}
	plain := tarOf(f, headers...)
	f.Add(plain)
	f.Add(gzipOf(f, plain))
	f.Add(zstdOf(f, plain))
	f.Add(zipOf(f, headers...))
	f.Fuzz(func(t *testing.T, content []byte) {
		a, err := openForeign(t, content)
		if err != nil {
			return
		}
		around := t.TempDir()
		dst := filepath.Join(around, "in")
		out, err := a.Unpack(t.Context(), dst, snapshot.UnpackOptions{Limits: snapshot.Limits{Entries: 100, Bytes: 1 << 16}}, sameName)
		left, rerr := os.ReadDir(around)
		if rerr != nil {
			t.Fatal(rerr)
		}
		if err != nil && len(left) > 0 || slices.ContainsFunc(left, func(e fs.DirEntry) bool { return e.Name() != "in" }) {
			t.Fatalf("left behind after %v: %v", err, left)
		}
		if err != nil {
			return
		}
		var size int64
		err = filepath.WalkDir(dst, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil && !info.Mode().IsRegular() {
				t.Fatalf("not a plain file: %v", info.Mode())
			}
			size += info.Size()
			return err
		})
		if err != nil || size > out.Bytes {
			t.Fatalf("%d bytes written, %d reported: %v", size, out.Bytes, err)
		}
	})
}

// Peek returns the named files of a valid archive, and nothing of a damaged one.
func TestPeek(t *testing.T) {
	v, _ := newVault(t)
	s := v.Plant(t, place, id(1), tarOf(t, file("a"), file("d/state.json")), 2)
	got, err := v.Peek(t.Context(), s, "d/state.json", "missing")
	if err != nil || len(got) != 1 || string(got["d/state.json"]) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	s.Archive.Entries++
	if got, err := v.Peek(t.Context(), s, "a"); !fault.Is(err, fault.ArchiveDamaged) || got != nil {
		t.Errorf("of an archive that its document does not bind: %q, %v", got, err)
	}
}
