package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/fault"
)

// childUID is the user of the children of these tests.
const childUID = 310950

// ordinaryUID is the ordinary user who runs a test again.
const ordinaryUID = 310951

// The test binary is also the child, as the daemon's binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		os.Exit(Main(os.Args[2:], map[string]Work{"try": try, "fill": fill, "crash": crash, "wait": wait, "flood": flood, "fail": fail, "write": write, "overfill": overfill}))
	}
	goleak.VerifyTestMain(m)
}

// attempts is the request of try: what it is to attempt.
type attempts struct {
	Read    []string // files and folders
	Write   []string // files
	Connect string   // a TCP address
	Signal  int      // a process
}

// tried is its answer: the error of each attempt, "" if it worked.
type tried struct {
	Errors map[string]string
	UID    int
	Caps   string
}

// try attempts what a child must not be able to do.
func try(ctx context.Context, request json.RawMessage, _ *os.File, folder string) (any, error) {
	var a attempts
	if err := json.Unmarshal(request, &a); err != nil {
		return nil, err
	}
	t := tried{Errors: map[string]string{}, UID: os.Getuid()}
	note := func(what string, err error) {
		t.Errors[what] = ""
		var errno syscall.Errno
		if errors.As(err, &errno) {
			t.Errors[what] = errno.Error()
		} else if err != nil {
			t.Errors[what] = err.Error()
		}
	}
	for _, name := range a.Read {
		f, err := os.Open(name)
		note("read "+name, err)
		if err == nil {
			_ = f.Close()
		}
	}
	for _, name := range a.Write {
		note("write "+name, os.WriteFile(name, []byte("x"), 0o600))
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", a.Connect)
	note("connect", err)
	if err == nil {
		_ = conn.Close()
	}
	_, err = net.ListenPacket("udp", "127.0.0.1:0")
	note("udp", err)
	note("signal", syscall.Kill(a.Signal, 0))
	note("process", exec.CommandContext(ctx, "/proc/self/exe").Run())
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0)
	if errno == 0 { // this is the child, or its child: the answer is missing
		os.Exit(1)
	}
	note("fork", errno)
	note("symlink", os.Symlink("/etc/passwd", filepath.Join(folder, "link")))
	note("link", os.Link(filepath.Join(folder, "own"), filepath.Join(folder, "other")))
	note("pipe", syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	note("root", syscall.Setuid(0))
	note("namespace", syscall.Unshare(syscall.CLONE_NEWUSER))
	var caps [2]unix.CapUserData
	note("capabilities", unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0]))
	t.Caps = fmt.Sprint(caps)
	return t, nil
}

// fill takes memory without an end.
func fill(context.Context, json.RawMessage, *os.File, string) (any, error) {
	var all [][]byte
	for len(all) < 1<<20 {
		all = append(all, make([]byte, 64<<20))
	}
	return len(all), nil
}

func crash(context.Context, json.RawMessage, *os.File, string) (any, error) { panic("crash") }

// wait waits until it is killed.
func wait(_ context.Context, _ json.RawMessage, _ *os.File, folder string) (any, error) {
	if err := os.WriteFile(filepath.Join(folder, "waits"), nil, 0o600); err != nil {
		return nil, err
	}
	select {}
}

// flood answers more than it may.
func flood(context.Context, json.RawMessage, *os.File, string) (any, error) {
	return strings.Repeat("x", 1<<20), nil
}

func fail(context.Context, json.RawMessage, *os.File, string) (any, error) {
	return nil, fault.New(fault.InvalidImport, "test", "what is wrong")
}

// write writes a file that is larger than it may be.
func write(_ context.Context, _ json.RawMessage, _ *os.File, folder string) (any, error) {
	return nil, os.WriteFile(filepath.Join(folder, "large"), make([]byte, 2<<20), 0o600)
}

// overfill writes more into its folder than it may, in files that are small enough each. The
// request says how: it answers, waits until it is killed, has the files without a name, or
// below paths that are too long to open.
func overfill(_ context.Context, request json.RawMessage, _ *os.File, folder string) (any, error) {
	var how string
	if err := errors.Join(json.Unmarshal(request, &how), os.Chdir(folder)); err != nil {
		return nil, err
	}
	for n := range 30 {
		name := strings.Repeat("x", 200) + fmt.Sprint(n)
		if how == "long paths" {
			if err := errors.Join(os.Mkdir(name, 0o700), os.Chdir(name)); err != nil {
				return nil, err
			}
			continue
		}
		f, err := os.Create(name)
		if err != nil {
			return nil, err
		}
		if how == "unnamed" {
			err = os.Remove(name)
		}
		if how != "many" {
			_, werr := f.Write(make([]byte, 1<<20))
			err = errors.Join(err, werr)
		}
		defer func() { _ = f.Close() }() // at the end
		if err != nil {
			return nil, err
		}
	}
	if how == "answers" || how == "many" || how == "long paths" {
		return "done", nil
	}
	select {}
}

// A child whose folder has more than it may is killed, or refused when it has ended.
func TestChildOverfills(t *testing.T) {
	c := newConfiner(t)
	for _, how := range []string{"answers", "waits", "unnamed", "many", "long paths"} {
		if how == "unnamed" && os.Geteuid() != 0 {
			continue // only root sees a child's open files
		}
		limits := FolderLimits{Bytes: 8 << 20, Entries: 1000}
		if how == "many" {
			limits.Entries = 20
		}
		_, err := c.Run(t.Context(), Task{Work: "overfill", Request: how, Folder: newFolder(t), UID: childUID, FileSize: 1 << 20, FolderLimits: limits, MaxAnswer: 1 << 10, Refused: fault.InvalidImport})
		if !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), "wrote more than 8 MiB") {
			t.Errorf("%s: %v", how, err)
		}
		if left := children(t); len(left) != 0 {
			t.Errorf("%s: still running: %v", how, left)
		}
	}
	// The input has no name either, and does not count.
	input, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = input.Close() }()
	if _, err := input.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(input.Name()); err != nil {
		t.Fatal(err)
	}
	if n := unnamedBytes(os.Getpid(), nil); n < 1<<20 {
		t.Errorf("%d bytes with the input", n)
	}
	if n := unnamedBytes(os.Getpid(), input); n != 0 {
		t.Errorf("%d bytes without the input", n)
	}
}

// ample is more than any other work writes.
var ample = FolderLimits{Bytes: 64 << 20, Entries: 1000}

func newConfiner(t *testing.T) *Confiner {
	t.Helper()
	c, err := New(t.Context(), childUID, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newFolder makes a child's folder, below one that it can enter.
func newFolder(t *testing.T) string {
	t.Helper()
	top, err := os.MkdirTemp("", "confine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	folder := filepath.Join(top, "own")
	if err := errors.Join(os.Chmod(top, 0o711), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(folder, childUID, childUID); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestChild starts a child that attempts what it must not be able to do.
func TestChild(t *testing.T) {
	c := newConfiner(t)
	t.Logf("%+v", c.Layers())
	if missing := c.Layers().Missing(); len(missing) > 0 {
		t.Fatalf("missing here: %v", missing)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // nothing was accepted
	folder := newFolder(t)
	beside := filepath.Join(filepath.Dir(folder), "beside")
	if err := os.WriteFile(beside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(beside, 0o666); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(folder, "own")
	var got tried
	raw, err := c.Run(t.Context(), Task{Work: "try", Folder: folder, UID: childUID, FileSize: 1 << 20, FolderLimits: ample, MaxAnswer: 1 << 20, Refused: fault.InvalidImport,
		Request: attempts{Read: []string{beside, "/etc/passwd", "/proc/self/status", "/dev/null", filepath.Dir(folder)}, Write: []string{own, beside},
			Connect: listener.Addr().String(), Signal: os.Getpid()}})
	if err := errors.Join(err, json.Unmarshal(raw, &got)); err != nil {
		t.Fatal(err)
	}
	denied, refused := syscall.EACCES.Error(), syscall.EPERM.Error()
	want := map[string]string{
		"read " + beside: denied, "read /etc/passwd": denied, "read /proc/self/status": denied, "read /dev/null": denied, "read " + filepath.Dir(folder): denied,
		"write " + own: "", "write " + beside: denied, "connect": refused, "udp": refused, "signal": refused,
		"process": denied, "fork": refused, "symlink": refused, "link": refused, "pipe": refused, "root": refused, "namespace": refused, "capabilities": "",
	}
	if os.Geteuid() != 0 { // the namespace of an ordinary user's child has no root
		want["root"] = syscall.EINVAL.Error()
	}
	if diff := cmp.Diff(want, got.Errors); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if os.Geteuid() == 0 && got.UID != childUID || got.UID == 0 {
		t.Errorf("it runs as %d", got.UID)
	}
	if got.Caps != fmt.Sprint([2]unix.CapUserData{}) {
		t.Errorf("capabilities: %s", got.Caps)
	}
}

// An ordinary user's children can do as little.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("TestChild runs as an ordinary user already")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestChild$", "-test.count=1", "-test.v")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUID, Gid: ordinaryUID}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestChild") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A child's network is not the daemon's. When its caller gives up, it ends.
func TestOwnNetwork(t *testing.T) {
	c := newConfiner(t)
	folder := newFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, Task{Work: "wait", Folder: folder, UID: childUID, FileSize: 1 << 20, FolderLimits: ample, MaxAnswer: 1 << 20, Refused: fault.InvalidImport})
		done <- err
	}()
	await(t, "the child waits", func() bool { return exists(filepath.Join(folder, "waits")) })
	child := children(t)
	if len(child) != 1 {
		t.Fatalf("children: %v", child)
	}
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", child[0]))
	if err != nil {
		t.Fatal(err)
	}
	if ours, err := os.Readlink("/proc/self/ns/net"); err != nil || own == ours {
		t.Errorf("the child is in the network namespace of this process: %s %v", own, err)
	}
	cancel()
	if err := <-done; !fault.Is(err, fault.Timeout) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left := children(t); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
}

// A child that ends without an answer is the error that its task names, with the limits.
func TestChildDies(t *testing.T) {
	c := newConfiner(t)
	for work, want := range map[string]string{"crash": "failed; it may use 1024 MiB", "fill": "it may use 1024 MiB", "flood": "it may use 1024 MiB"} {
		if work == "fill" && !limitMemory {
			continue
		}
		_, err := c.Run(t.Context(), Task{Work: work, UID: childUID, MaxAnswer: 1 << 10, Refused: fault.InvalidImport})
		if !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), want) {
			t.Errorf("%s: %v", work, err)
		}
	}
}

// An error of a child's work keeps its code and its message.
func TestChildFails(t *testing.T) {
	c := newConfiner(t)
	_, err := c.Run(t.Context(), Task{Work: "fail", UID: childUID, MaxAnswer: 1 << 10, Refused: fault.InvalidExtension})
	if !fault.Is(err, fault.InvalidImport) || fault.MessageOf(err) != "what is wrong" {
		t.Error(err)
	}
	_, err = c.Run(t.Context(), Task{Work: "write", Folder: newFolder(t), UID: childUID, FileSize: 1 << 20, FolderLimits: ample, MaxAnswer: 1 << 10, Refused: fault.InvalidExtension})
	if err == nil {
		t.Error("a file larger than the limit was written")
	}
}

// A child that is killed from outside is the same error.
func TestChildKilled(t *testing.T) {
	c := newConfiner(t)
	folder := newFolder(t)
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), Task{Work: "wait", Folder: folder, UID: childUID, FileSize: 1 << 20, FolderLimits: ample, MaxAnswer: 1 << 20, Refused: fault.InvalidImport})
		done <- err
	}()
	await(t, "the child waits", func() bool { return exists(filepath.Join(folder, "waits")) })
	for _, pid := range children(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; !fault.Is(err, fault.InvalidImport) || !strings.Contains(fault.MessageOf(err), "signal killed") {
		t.Error(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// children returns the children of this process that run.
func children(t *testing.T) (pids []int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(raw)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// await fails the test unless the condition becomes true in time.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
