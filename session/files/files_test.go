package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// oneSession is a live session with a run directory.
type oneSession struct{ dir *browser.Dir }

func (s oneSession) WithDir(ctx context.Context, _ access.Caller, _ string, do func(context.Context, *browser.Dir) error) error {
	return do(ctx, s.dir)
}

// permanentKeys are keys that are never deleted.
type permanentKeys struct{}

func (permanentKeys) CallContext(ctx context.Context, _ access.Caller) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

// Only regular files of the folder are listed and read. Links, pipes and folders, which a
// page may have planted there, neither lead out of it nor block a call.
func TestOnlyPlainFiles(t *testing.T) {
	ctx, c := t.Context(), access.Caller{}
	dir := &browser.Dir{Path: t.TempDir(), UID: -1}
	secret := filepath.Join(dir.Path, "secret")
	err := errors.Join(os.Mkdir(dir.Files(), 0o700), os.WriteFile(secret, []byte("s"), 0o600),
		os.Symlink(secret, filepath.Join(dir.Files(), "link")), syscall.Mkfifo(filepath.Join(dir.Files(), "pipe"), 0o600), os.Mkdir(filepath.Join(dir.Files(), "folder"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	files := New(oneSession{dir}, permanentKeys{})
	for _, text := range []string{"first", "second"} {
		if err := files.PutFile(ctx, c, "s", "a.txt", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.PutFile(ctx, c, "s", "broken", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))); err == nil {
		t.Error("an upload that was cut off is stored")
	}
	err = files.PutFile(ctx, c, "s", partPrefix+"x", strings.NewReader("hidden"))
	if !fault.Is(err, fault.InvalidField) || !strings.HasPrefix(fault.MessageOf(err), "name: must not begin with .stasis-part-") {
		t.Errorf("an upload with the name of an incomplete one: %v", err)
	}
	list, err := files.ListFiles(ctx, c, "s")
	if err != nil || len(list) != 1 || list[0].Name != "a.txt" || list[0].Size != 6 {
		t.Errorf("%+v, %v", list, err)
	}
	if left, err := os.ReadDir(dir.Files()); err != nil || len(left) != 4 {
		t.Errorf("%v, %v", left, err)
	}
	for _, name := range []string{"link", "pipe", "folder", "../secret", "missing"} {
		if _, err := files.OpenFile(ctx, c, "s", name); !fault.Is(err, fault.FileNotFound) {
			t.Errorf("opening %s: %v", name, err)
		}
		if err := files.DeleteFile(ctx, c, "s", name); !fault.Is(err, fault.FileNotFound) {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	file, err := files.OpenFile(ctx, c, "s", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil || string(text) != "second" {
		t.Errorf("%q, %v", text, err)
	}
	if err := files.DeleteFile(ctx, c, "s", "a.txt"); err != nil {
		t.Error(err)
	}
}

// A download is found by its name and by its GUID, until its file is removed or replaced.
func TestDownloadByGUID(t *testing.T) {
	ctx, c := t.Context(), access.Caller{}
	dir := &browser.Dir{Path: t.TempDir(), UID: -1}
	files := New(oneSession{dir}, permanentKeys{})
	const first, second = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	err := errors.Join(os.Mkdir(dir.Files(), 0o700), os.Mkdir(dir.Incoming(), 0o700))
	for _, guid := range []string{first, second} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir.Incoming(), guid), []byte(guid), 0o600))
		_, failed := dir.Downloads().Finish(guid, "report.txt")
		err = errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := files.ListFiles(ctx, c, "s")
	if err != nil || len(list) != 2 || list[0].Name != "report (1).txt" || list[0].GUID != second || list[1].GUID != first {
		t.Fatalf("%+v, %v", list, err)
	}
	file, err := files.OpenFile(ctx, c, "s", second)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil || string(text) != second {
		t.Errorf("%q, %v", text, err)
	}
	if err := files.DeleteFile(ctx, c, "s", second); err != nil {
		t.Error(err)
	}
	if err := files.PutFile(ctx, c, "s", "report.txt", strings.NewReader("mine")); err != nil {
		t.Error(err)
	}
	for _, guid := range []string{first, second} {
		if _, err := files.OpenFile(ctx, c, "s", guid); !fault.Is(err, fault.FileNotFound) {
			t.Errorf("%s: %v", guid, err)
		}
	}
}

// An upload that may replace no file gets a number, as a download does. It leaves no part.
func TestAddFile(t *testing.T) {
	ctx, c := t.Context(), access.Caller{}
	dir := &browser.Dir{Path: t.TempDir(), UID: -1}
	if err := os.Mkdir(dir.Files(), 0o700); err != nil {
		t.Fatal(err)
	}
	files := New(oneSession{dir}, permanentKeys{})
	for i, want := range []string{"report.txt", "report (1).txt", "report (2).txt"} {
		name, err := files.AddFile(ctx, c, "s", "report.txt", strings.NewReader(want))
		if err != nil || name != want {
			t.Fatalf("%d: %q, %v", i, name, err)
		}
		if data, err := os.ReadFile(filepath.Join(dir.Files(), want)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", want, data, err)
		}
	}
	if _, err := files.AddFile(ctx, c, "s", "broken", iotest.ErrReader(io.ErrUnexpectedEOF)); err == nil {
		t.Error("an upload that was cut off is stored")
	}
	if left, err := os.ReadDir(dir.Files()); err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
}
