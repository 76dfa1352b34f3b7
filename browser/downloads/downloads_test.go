package downloads

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func guid(n string) string { return "00000000-0000-4000-8000-00000000000" + n }

// run makes a run directory with some unfinished downloads.
func run(t *testing.T, guids ...string) (*Folder, string) {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(dir, "downloads"), 0o700), os.Mkdir(filepath.Join(dir, "files"), 0o700))
	for _, g := range guids {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "downloads", g), []byte(g), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return In(dir, "downloads", "files"), dir
}

// Downloads of one name get numbers, also beside an upload of that name. Each is found by
// its GUID until its file is removed.
func TestSameName(t *testing.T) {
	f, dir := run(t, guid("1"), guid("2"), guid("3"))
	if err := os.WriteFile(filepath.Join(dir, "files", "report.txt"), []byte("an upload"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, c := range [][2]string{{guid("1"), "report (1).txt"}, {guid("2"), "report (2).txt"}, {guid("1"), "report (1).txt"}, {guid("3"), "report (3).txt"}} {
		got, err := f.Finish(c[0], "report.txt")
		if err != nil || got != c[1] {
			t.Fatalf("%q, %v, want %q", got, err, c[1])
		}
		want[got] = c[0]
		text, err := os.ReadFile(filepath.Join(dir, "files", got))
		if err != nil || string(text) != c[0] || f.Find(c[0]) != got {
			t.Errorf("%s contains %q, %v; its GUID finds %q", got, text, err, f.Find(c[0]))
		}
	}
	if upload, err := os.ReadFile(filepath.Join(dir, "files", "report.txt")); err != nil || string(upload) != "an upload" {
		t.Errorf("the upload is %q, %v", upload, err)
	}
	if got := f.GUIDs(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := f.Size(), int64(3*len(guid("1"))); got != want {
		t.Errorf("the downloads have %d bytes, want %d", got, want)
	}
	if err := errors.Join(f.Forget("report (2).txt"), f.Forget("report (2).txt"), f.Forget("none")); err != nil {
		t.Error(err)
	}
	if got, want := f.Size(), int64(2*len(guid("1"))); got != want {
		t.Errorf("after a delete the downloads have %d bytes, want %d", got, want)
	}
	if f.Find(guid("2")) != "" || f.Find(guid("3")) == "" {
		t.Error("Forget removed another GUID, or none")
	}
}

// Names that a site suggests become names that can be listed and read.
func TestSuggestedNames(t *testing.T) {
	long := strings.Repeat("ä", 200)
	for suggested, want := range map[string]string{
		"a b.tar.gz": "a b.tar.gz", "../../etc/passwd": "_._.._etc_passwd", "": "download", "  ": "download", ".": "_", "..": "_.", ".bashrc": "_bashrc",
		"a\x00b\nc": "a_b_c", "\xff.txt": "_.txt", `c:\x`: "c:_x", long + ".pdf": strings.Repeat("ä", 125) + ".pdf", "x." + long: strings.ToValidUTF8(("x." + long)[:maxName], ""),
	} {
		f, _ := run(t, guid("1"))
		got, err := f.Finish(guid("1"), suggested)
		if err != nil || got != want || len(got) > maxName || !utf8.ValidString(got) {
			t.Errorf("%q became %q, %v, want %q", suggested, got, err, want)
		}
	}
	if stem, extension := split("a b.tar.gz"); numbered(stem, extension, 12) != "a b (12).tar.gz" {
		t.Error(numbered(stem, extension, 12))
	}
}

// Nothing outside the two folders is read or moved, whatever Chrome put into them.
func TestHostileFolders(t *testing.T) {
	f, dir := run(t, guid("1"))
	secret := filepath.Join(t.TempDir(), "secret")
	err := errors.Join(os.WriteFile(secret, []byte("s"), 0o600), os.Symlink("../secret", filepath.Join(dir, "downloads", guid("2"))),
		os.Remove(filepath.Join(dir, "files")), os.Symlink(filepath.Dir(secret), filepath.Join(dir, "files")))
	if err != nil {
		t.Fatal(err)
	}
	if name, err := f.Finish(guid("1"), "a"); err == nil {
		t.Errorf("a download was moved to %q, outside the run directory", name)
	}
	for _, g := range []string{guid("2"), guid("9"), "", "../secret", "..", "a"} {
		if name := f.Find(g); name != "" {
			t.Errorf("%q finds %q", g, name)
		}
	}
	for _, g := range []string{"", "../x", guid("9"), guid("2")} {
		if name, err := f.Finish(g, "a"); err == nil {
			t.Errorf("%q was finished as %q", g, name)
		}
	}
}

// A file that was downloaded elsewhere keeps its GUID. A newer download of its name gets a number.
func TestAdopt(t *testing.T) {
	f, dir := run(t, guid("1"))
	if _, err := f.Finish(guid("1"), "report.txt"); err != nil {
		t.Fatal(err)
	}
	if err := f.Renumber("report.txt"); err != nil || f.Find(guid("1")) != "report (1).txt" {
		t.Fatalf("the download is %q, %v", f.Find(guid("1")), err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "files", "report.txt"), []byte("moved"), 0o600), f.Adopt(guid("2"), "report.txt")); err != nil {
		t.Fatal(err)
	}
	if got, want := f.GUIDs(), map[string]string{"report.txt": guid("2"), "report (1).txt": guid("1")}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := f.Renumber("none"); err == nil {
		t.Error("a file that is not there got a number")
	}
	for _, bad := range [][2]string{{"../x", "a"}, {guid("3"), "../a"}, {"", "a"}, {guid("2"), "report.txt"}} {
		if err := f.Adopt(bad[0], bad[1]); err == nil {
			t.Errorf("%q leads to %q", bad[0], bad[1])
		}
	}
}

// What an unfinished download has left is known, and is removed without the finished ones.
func TestUnfinished(t *testing.T) {
	f, dir := run(t, guid("1"), guid("2"))
	if _, err := f.Finish(guid("1"), "report.txt"); err != nil {
		t.Fatal(err)
	}
	if some, err := f.Unfinished(); err != nil || !some {
		t.Errorf("unfinished: %v, %v", some, err)
	}
	if err := f.Discard(); err != nil {
		t.Error(err)
	}
	if some, err := f.Unfinished(); err != nil || some || f.Find(guid("1")) != "report.txt" {
		t.Errorf("unfinished: %v, %v; the finished one is %q", some, err, f.Find(guid("1")))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Unfinished(); err == nil {
		t.Error("a run directory that is not there has no unfinished downloads")
	}
}
