package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/stasisd/stasis/fault"
)

// A preflight of the real Chrome returns its version and leaves nothing behind.
func TestPreflight(t *testing.T) {
	l := newLauncher(t, "")
	v, err := l.Preflight(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if v.Major < MinMajor || !strings.HasPrefix(v.Full, "1") || v.Binary != l.Binary() {
		t.Errorf("version is %+v", v)
	}
	if left, err := os.ReadDir(l.Root()); err != nil || len(left) != 0 {
		t.Errorf("remaining: %v, %v", left, err)
	}
	if len(l.uids.taken) != 0 {
		t.Errorf("UIDs still taken: %v", l.uids.taken)
	}
}

// fakeChrome installs a script as Chrome.
func fakeChrome(t *testing.T, script string) *Launcher {
	t.Helper()
	path := filepath.Join(shortTemp(t), "chrome")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return newLauncher(t, path)
}

// Each failure of a preflight has its code and says what to do.
func TestPreflightFailures(t *testing.T) {
	const modern = `[ "$1" = --version ] && { echo Chromium 156.0.1.2 built on Debian; exit; }` + "\n"
	for name, test := range map[string]struct {
		script  string
		code    fault.Code
		message string
		cause   string
	}{
		"too old":      {"echo Chromium 120.0.6099.224 built on Debian", fault.ChromeMissing, "apt-get install chromium", ""},
		"not a Chrome": {"echo hello", fault.ChromeMissing, "apt-get install chromium", ""},
		"no sandbox":   {modern + "echo 'FATAL: No usable sandbox!' >&2; exit 1", fault.SandboxFailed, "sandbox", "No usable sandbox!"},
		"a crash":      {modern + "echo lost my library >&2; kill -SEGV $$", fault.BrowserFailed, "", "lost my library"},
		"unconfined":   {modern + "head -c 1 <&3 >/dev/null; printf '{\"id\":1,\"result\":{}}\\0' >&4; exit 1", fault.BrowserFailed, "", "before its sandbox was checked"},
	} {
		t.Run(name, func(t *testing.T) {
			l := fakeChrome(t, test.script)
			_, err := l.Preflight(within(t))
			if !fault.Is(err, test.code) || !strings.Contains(fault.MessageOf(err), test.message) ||
				!strings.Contains(err.Error(), test.cause) {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadDir(l.Root()); err != nil || len(left) != 0 {
				t.Errorf("remaining: %v, %v", left, err)
			}
		})
	}
}

// A data directory that Chrome's user cannot enter is a configuration error.
func TestPreflightImpassable(t *testing.T) {
	closed := shortTemp(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{Root: closed + "/run", UIDs: testUIDs})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Preflight(within(t))
	if !fault.Is(err, fault.Config) || !strings.Contains(fault.MessageOf(err), "chmod o+x") || strings.Contains(fault.MessageOf(err), closed) {
		t.Errorf("preflight: %v", err)
	}
	_, err = l.Start(within(t), Options{Dir: newDir(t, l, "s")})
	if !fault.Is(err, fault.Config) {
		t.Errorf("start: %v", err)
	}
}

// The remedy depends on the machine.
func TestRemedy(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for want, host := range map[string]fstest.MapFS{
		"run: sysctl -w kernel.unprivileged_userns_clone=1":                                                                            {"proc/sys/kernel/unprivileged_userns_clone": file("0\n")},
		"run on the host: sysctl -w kernel.unprivileged_userns_clone=1":                                                                {"proc/sys/kernel/unprivileged_userns_clone": file("0\n"), ".dockerenv": file("")},
		"run: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0":                                                                {"proc/sys/kernel/apparmor_restrict_unprivileged_userns": file("1\n")},
		"run: sysctl -w user.max_user_namespaces=10000":                                                                                {"proc/sys/user/max_user_namespaces": file("0\n")},
		"start the container with the seccomp profile that comes with Stasis: docker run --security-opt seccomp=docker/seccomp.json …": {".dockerenv": file(""), "proc/sys/user/max_user_namespaces": file("7\n")},
	} {
		if got := remedy(host); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := remedy(fstest.MapFS{}); !strings.Contains(got, "user namespaces must be allowed") {
		t.Errorf("got %q", got)
	}
}

// A UID is assigned once, is reused as late as possible, and not while a process still
// runs as it.
func TestUIDs(t *testing.T) {
	alive := map[int]bool{101: true}
	pool := newUIDPool(UIDRange{Base: 100, Count: 3}, func() map[int]bool { return alive })
	take := func() int {
		t.Helper()
		uid, err := pool.take()
		if err != nil {
			t.Fatal(err)
		}
		return uid
	}
	got := []int{take(), take()}
	if _, err := pool.take(); !fault.Is(err, fault.TooManySessions) {
		t.Errorf("exhausted: %v", err)
	}
	pool.give(100)
	delete(alive, 101)
	got = append(got, take(), take())
	if diff := cmp.Diff([]int{100, 102, 100, 101}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !aliveUIDs()[os.Getuid()] {
		t.Error("the test's own UID is not among those of running processes")
	}
}

// Names outside the root, or too long for Chrome's socket, are refused.
func TestNewDirRefuses(t *testing.T) {
	l := newLauncher(t, "")
	for _, name := range []string{"", ".", "..", "a/b", "../x", "/"} {
		if dir, err := l.NewDir(name); err == nil {
			t.Errorf("%q was accepted and created %s", name, dir.Path)
		}
	}
	if _, err := l.NewDir(strings.Repeat("x", 60)); !fault.Is(err, fault.Config) {
		t.Errorf("too long: %v", err)
	}
	newDir(t, l, "twice")
	if _, err := l.NewDir("twice"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second: %v", err)
	}
	if n := len(l.uids.taken); n != 1 {
		t.Errorf("%d uids are taken", n)
	}
}

// Chrome works with the longest path that NewDir accepts.
func TestLongestPath(t *testing.T) {
	l := newLauncher(t, "")
	room := maxSocketPath - socketRoom - len(l.root) - len("//tmp")
	p := start(t, l, Options{Dir: newDir(t, l, strings.Repeat("x", room)), URL: "about:blank"})
	newClient(t, p).version()
	if _, err := l.NewDir(strings.Repeat("y", room+1)); !fault.Is(err, fault.Config) {
		t.Errorf("one more byte: %v", err)
	}
}

// Chown changes the owner of all files, and of symbolic links instead of their targets.
func TestOwn(t *testing.T) {
	l := newLauncher(t, "")
	dir := newDir(t, l, "o")
	outside := filepath.Join(shortTemp(t), "outside")
	for _, path := range []string{outside, filepath.Join(dir.Profile(), "file")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir.Files(), "link")); err != nil {
		t.Fatal(err)
	}
	if err := dir.Chown(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{outside: 0, dir.Profile() + "/file": dir.UID, dir.Files() + "/link": dir.UID} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := ownerOf(fs.FileInfoToDirEntry(info)); got != want {
			t.Errorf("%s belongs to %d", filepath.Base(path), got)
		}
	}
}

// Flags that weaken the sandbox, open a port or conflict are refused, and the package
// itself sets none of them.
func TestFlags(t *testing.T) {
	dir := &Dir{Path: "/run/x"}
	for _, flag := range []string{"--no-sandbox", "-no-sandbox", "--remote-debugging-port=0", "--user-data-dir=/", "--enable-features=X", "https://example.com", "--"} {
		if _, err := arguments(Options{Dir: dir, ExtraArgs: []string{flag}}); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	args, err := arguments(Options{Dir: dir, Profile: "Spare", URL: "about:blank", Width: 800, Height: 600, ExtraArgs: []string{"--lang=de"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--user-data-dir=/run/x/profile", "--profile-directory=Spare", "--window-size=800,600", "--lang=de", "--remote-debugging-pipe"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if args[len(args)-1] != "about:blank" {
		t.Errorf("last is %s", args[len(args)-1])
	}
	for _, arg := range args {
		if strings.Contains(arg, "no-sandbox") || strings.Contains(arg, "debugging-port") {
			t.Errorf("has %s", arg)
		}
	}
}

// Keys typed before a page's first frame must reach the page, in both engines.
func TestFlagsTakeInputBeforeTheFirstFrame(t *testing.T) {
	for _, shell := range []bool{false, true} {
		args, err := arguments(Options{Dir: &Dir{Path: "/run/x"}, Shell: shell})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(args, preCommitInput) {
			t.Errorf("shell %v: no %s", shell, preCommitInput)
		}
	}
}

// A process's name may contain anything; the fields come after it.
func TestParseStat(t *testing.T) {
	const tail = " S 7 1 1 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 4242 0 0"
	p, err := parseStat(9, "9 (a) b (c)"+tail)
	if err != nil {
		t.Fatal(err)
	}
	want := proc{pid: 9, ppid: 7, state: 'S', cpu: 1_270_000_000, start: 4242}
	if p != want {
		t.Errorf("got %+v", p)
	}
	for _, bad := range []string{"", "9 a S 7", "9 (a) S 7"} {
		if _, err := parseStat(9, bad); err == nil {
			t.Errorf("%q was parsed", bad)
		}
	}
}
