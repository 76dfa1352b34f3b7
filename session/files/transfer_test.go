package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

func newDir(t testing.TB) *browser.Dir {
	t.Helper()
	dir := &browser.Dir{Path: t.TempDir(), UID: -1}
	if err := errors.Join(os.Mkdir(dir.Files(), 0o700), os.Mkdir(dir.Incoming(), 0o700)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What Chrome has planted beside the files is not sent: links, pipes, folders, parts of uploads, and
// names that no call can read.
func TestSendOnlyFiles(t *testing.T) {
	dir, to := newDir(t), newDir(t)
	in := func(name string) string { return filepath.Join(dir.Files(), name) }
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	const guid = "11111111-1111-4111-8111-111111111111"
	err := errors.Join(os.WriteFile(in("a\nb \"ä\".txt"), []byte("text"), 0o600), os.Chtimes(in("a\nb \"ä\".txt"), when, when), os.WriteFile(in("empty"), nil, 0o600),
		os.Symlink("/etc/passwd", in("link")), syscall.Mkfifo(in("pipe"), 0o600), os.Mkdir(in("folder"), 0o700),
		os.WriteFile(in(partPrefix+"x"), nil, 0o600), os.WriteFile(in("\xff"), nil, 0o600),
		os.Symlink("a\nb \"ä\".txt", filepath.Join(dir.Incoming(), guid)), os.Symlink("link", filepath.Join(dir.Incoming(), strings.Replace(guid, "1", "2", 1))))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Count(dir); err != nil || n != 2 {
		t.Errorf("%d files, %v", n, err)
	}
	var stream bytes.Buffer
	if err := Send(t.Context(), dir, &stream); err != nil {
		t.Fatal(err)
	}
	if err := Receive(t.Context(), to, iotest.OneByteReader(&stream), 0); err != nil {
		t.Fatal(err)
	}
	list, err := New(oneSession{to}, permanentKeys{}).ListFiles(t.Context(), access.Caller{}, "s")
	want := []Info{{Name: "a\nb \"ä\".txt", GUID: guid, Size: 4, ModTime: when}, {Name: "empty", ModTime: list[len(list)-1].ModTime}}
	if err != nil || len(list) != 2 || list[0] != want[0] || list[1] != want[1] {
		t.Errorf("%+v, %v", list, err)
	}
	if links, err := os.ReadDir(to.Incoming()); err != nil || len(links) != 1 {
		t.Errorf("%v, %v", links, err)
	}
}

// A file that cannot be sent as it is listed ends the stream with an error.
func TestSendFails(t *testing.T) {
	dir := newDir(t)
	if err := os.WriteFile(filepath.Join(dir.Files(), "a"), make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	shrinks := writerFunc(func(p []byte) (int, error) {
		return len(p), os.Truncate(filepath.Join(dir.Files(), "a"), 10)
	})
	if err := Send(t.Context(), dir, shrinks); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("a file that became shorter: %v", err)
	}
	if err := os.RemoveAll(dir.Path); err != nil {
		t.Fatal(err)
	}
	if err := Send(t.Context(), dir, io.Discard); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Whatever arrives, nothing is written outside the two folders, and only what is whole is a file.
func FuzzReceive(f *testing.F) {
	dir := newDir(f)
	if err := os.WriteFile(filepath.Join(dir.Files(), "a"), []byte("text"), 0o600); err != nil {
		f.Fatal(err)
	}
	var whole bytes.Buffer
	if err := Send(f.Context(), dir, &whole); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	for _, change := range [][2]string{
		{`"a"`, `"../a"`}, {`"a"`, `"."`}, {`"a"`, `"` + partPrefix + `"`}, {`"a"`, `""`}, {`"a"`, `"a\u0000"`}, {`"a"`, `"a","guid":"../x"`}, {`"size":4`, `"size":-4`},
		{`"size":4`, `"size":9223372036854775807`}, {`"files":1`, `"files":-1`}, {`"files":1`, `"files":9223372036854775807`}, {`"bytes":4`, `"bytes":3`}, {"text", "texT"}, {"text", "textx"}, {"text", ""}, {"\n", ""},
	} {
		f.Add(bytes.Replace(whole.Bytes(), []byte(change[0]), []byte(change[1]), 1))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		to := newDir(t)
		err := Receive(t.Context(), to, bytes.NewReader(stream), 1<<20)
		if entries, failed := os.ReadDir(to.Path); failed != nil || len(entries) != 2 {
			t.Errorf("the run directory has %v, %v", entries, failed)
		}
		if entries, failed := os.ReadDir(filepath.Dir(to.Path)); failed != nil || len(entries) != 1 {
			t.Errorf("beside the run directory is %v, %v", entries, failed)
		}
		var known *fault.Error
		if err != nil && !errors.As(err, &known) {
			t.Errorf("an error without a code: %v", err)
		}
		if parts, _ := filepath.Glob(filepath.Join(to.Files(), partPrefix+"*")); len(parts) != 0 {
			t.Errorf("left: %q", parts)
		}
	})
}

// endingSession is a session whose end begins while a call has its files.
type endingSession struct{ oneSession }

func (s endingSession) WithDir(ctx context.Context, c access.Caller, id string, do func(context.Context, *browser.Dir) error) error {
	ctx, end := context.WithCancel(ctx)
	return s.oneSession.WithDir(ctx, c, id, func(ctx context.Context, dir *browser.Dir) error {
		end()
		return do(ctx, dir)
	})
}

// A delete is not confirmed if a move of the session may have sent the file before.
func TestDeleteWhileMoving(t *testing.T) {
	dir := newDir(t)
	if err := os.WriteFile(filepath.Join(dir.Files(), "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(endingSession{oneSession{dir}}, permanentKeys{}).DeleteFile(t.Context(), access.Caller{}, "s", "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("the delete is confirmed: %v", err)
	}
}
