package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stasisd/stasis/fault"
	"golang.org/x/sys/unix"
)

// A Chrome answers over its pipe and closes cleanly, and nothing remains.
func TestStartAndClose(t *testing.T) {
	l := newLauncher(t, "")
	p := start(t, l, Options{URL: "about:blank"})
	c := newClient(t, p)
	c.version()
	await(t, "a renderer", func() bool { return hasRenderer(p) })
	if name, err := os.ReadFile(procPath(p.warden.Process.Pid, "comm")); err != nil || string(name) != wardenName+"\n" {
		t.Errorf("the warden is called %q, %v", name, err)
	}
	before := p.Processes()
	c.close()
	if err := p.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	if exit := p.ExitState(); !exit.Clean() {
		t.Errorf("ended with %+v", exit)
	}
	for _, pid := range before {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if err := p.Signal(syscall.SIGINT); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to an ended Chrome: %v", err)
	}
	if got := p.Processes(); len(got) != 0 {
		t.Errorf("processes of an ended Chrome: %v", got)
	}
}

// Kill ends the whole tree, frozen or not, and may be called again.
func TestKill(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		l := newLauncher(t, "")
		p := start(t, l, Options{URL: "about:blank"})
		newClient(t, p).version()
		if frozen {
			if err := p.Freeze(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := p.Kill(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		want := ExitState{Signal: syscall.SIGKILL}
		got := p.ExitState()
		got.Stderr = ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("frozen %v: exit state (-want +got):\n%s", frozen, diff)
		}
		if p.Frozen() {
			t.Error("an ended Chrome is frozen")
		}
		if p.main != nil || !errors.Is(p.Signal(syscall.SIGINT), os.ErrProcessDone) {
			t.Error("the handle of an ended Chrome is still open")
		}
		if err := p.Freeze(within(t)); !fault.Is(err, fault.BrowserFailed) {
			t.Errorf("freezing an ended Chrome: %v", err)
		}
	}
}

// If Chrome's main process or the warden is killed, the whole tree ends, including frozen
// processes.
func TestKilledByOthers(t *testing.T) {
	l := newLauncher(t, "")
	for name, victim := range map[string]func(*Process) int{
		"main":   (*Process).PID,
		"warden": func(p *Process) int { return p.warden.Process.Pid },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, l, Options{URL: "about:blank"})
			newClient(t, p).version()
			await(t, "a renderer", func() bool { return hasRenderer(p) })
			if err := p.Freeze(within(t)); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(victim(p), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(within(t)); err != nil {
				t.Fatal(err)
			}
			if p.ExitState().Clean() {
				t.Error("a killed Chrome is reported as ended cleanly")
			}
		})
	}
}

// A terminal's signals end neither the warden nor Chrome.
func TestWardenSurvivesTerminalSignals(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "about:blank"})
	c := newClient(t, p)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(p.warden.Process.Pid, sig); err != nil {
			t.Fatal(err)
		}
		c.version()
	}
	own, _ := unix.Getsid(0)
	if session, err := unix.Getsid(p.PID()); err != nil || session == own {
		t.Errorf("Chrome is in the daemon's session: %v", err)
	}
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(within(t)); err != nil {
		t.Fatal("Chrome itself ignores SIGINT:", err)
	}
}

// Chrome runs as its own user, in folders that only this user can enter, and sees nothing
// of the daemon's environment and descriptors.
func TestIsolation(t *testing.T) {
	t.Setenv("STASIS_API_KEY", "do-not-leak-me")
	// A pipe without close-on-exec, which every child would inherit.
	var inherited [2]int
	if err := syscall.Pipe(inherited[:]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(syscall.Close(inherited[0]), syscall.Close(inherited[1])); err != nil {
			t.Error(err)
		}
	})
	l := newLauncher(t, "")
	one, two := newDir(t, l, "one"), newDir(t, l, "two")
	if one.UID == two.UID || !l.uids.contains(one.UID) || !l.uids.contains(two.UID) {
		t.Fatalf("uids are %d and %d", one.UID, two.UID)
	}
	p := start(t, l, Options{Dir: one, URL: "about:blank", TimeZone: "Asia/Tokyo"})
	other := start(t, l, Options{Dir: two, URL: "about:blank"})
	newClient(t, p).version()
	newClient(t, other).version()
	await(t, "a renderer", func() bool { return hasRenderer(p) })

	for _, folder := range append([]string{""}, subdirs...) {
		info, err := os.Stat(filepath.Join(one.Path, folder))
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != 0o700 || int(owner.Uid) != one.UID {
			t.Errorf("%q has mode %v and owner %d", folder, info.Mode(), owner.Uid)
		}
	}
	examined := 0
	for _, pid := range p.Processes() {
		uid, groups := uidOf(pid), statusFields(pid, "Groups")
		env, err := os.ReadFile(procPath(pid, "environ"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // one of Chrome's processes that live shortly
		}
		if err != nil {
			t.Fatal(err)
		}
		examined++
		if uid != one.UID {
			t.Errorf("process %d runs as %d", pid, uid)
		}
		if len(groups) != 0 {
			t.Errorf("process %d has supplementary groups %v", pid, groups)
		}
		if bytes.Contains(env, []byte("do-not-leak-me")) {
			t.Errorf("process %d has the daemon's environment", pid)
		}
	}
	if examined < 4 { // the main process, two zygotes and a renderer
		t.Errorf("only %d processes were examined", examined)
	}
	env, err := os.ReadFile(procPath(p.PID(), "environ"))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(env), "\x00"), "\x00")
	if diff := cmp.Diff(environment(one, "Asia/Tokyo"), got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	wardenEnv, err := os.ReadFile(procPath(p.warden.Process.Pid, "environ"))
	if err != nil || string(wardenEnv) != "GORACE=atexit_sleep_ms=0\x00" {
		t.Errorf("the warden's environment: %q, %v", wardenEnv, err)
	}
	// Chrome must not hold an end of a pipe that the daemon writes to, and a warden not the
	// lifeline of another. Otherwise its closing would not be noticed.
	daemon := pipesOf(t, os.Getpid())
	for _, pid := range p.Processes() {
		for inode := range pipesOf(t, pid) {
			if daemon[inode] {
				t.Errorf("process %d holds an end of a pipe of the daemon: %s", pid, inode)
			}
		}
	}
	lifeline, err := os.Readlink(procPath(os.Getpid(), fmt.Sprintf("fd/%d", p.lifeline.Fd())))
	if err != nil || !daemon[lifeline] || pipesOf(t, other.warden.Process.Pid)[lifeline] {
		t.Errorf("the second warden holds the first one's lifeline %s: %v", lifeline, err)
	}
}

// pipesOf returns the pipes that a process can write to, except its standard streams.
func pipesOf(t *testing.T, pid int) map[string]bool {
	t.Helper()
	links, err := filepath.Glob(procPath(pid, "fd/*"))
	if err != nil {
		t.Fatal(err)
	}
	pipes := map[string]bool{}
	for _, link := range links {
		info, err := os.Lstat(link)
		if err != nil || info.Mode().Perm()&0o200 == 0 {
			continue
		}
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "pipe:") && !strings.HasSuffix(link, "/1") && !strings.HasSuffix(link, "/2") {
			pipes[to] = true
		}
	}
	return pipes
}

// No process of the tree listens on a TCP port.
func TestNoPort(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "about:blank"})
	newClient(t, p).version()
	await(t, "a renderer", func() bool { return hasRenderer(p) })
	listening := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(procPath(p.PID(), "net/"+table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" {
				listening["socket:["+f[9]+"]"] = true
			}
		}
	}
	for _, pid := range p.Processes() {
		links, err := filepath.Glob(procPath(pid, "fd/*"))
		if status, _ := os.ReadFile(procPath(pid, "status")); len(links) == 0 && (len(status) == 0 || strings.Contains(string(status), "State:\tZ")) {
			continue // it has ended
		}
		if err != nil || len(links) == 0 {
			t.Fatalf("descriptors of %d: %v", pid, err)
		}
		for _, link := range links {
			if to, _ := os.Readlink(link); listening[to] {
				t.Errorf("process %d listens on TCP: %s", pid, commandLine(pid))
			}
		}
	}
}

// A start whose context ends leaves nothing behind.
func TestStartCancelled(t *testing.T) {
	l := newLauncher(t, "")
	dir := newDir(t, l, "c")
	for _, before := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		if before {
			cancel()
		} else {
			// Ended after Start has begun: its first check has passed by then.
			ctx = &expiring{Context: ctx, looks: 1, cancel: cancel}
		}
		p, err := l.Start(ctx, Options{Dir: dir})
		cancel()
		if p != nil || !fault.Is(err, fault.BrowserFailed) || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before %v: %v, %v", before, p, err)
		}
		for _, q := range processes() {
			if !q.dead() && dir.runsHere(q.pid) {
				t.Errorf("process %d still runs", q.pid)
			}
		}
	}
}

// expiring is a context that ends after it has been checked looks times.
type expiring struct {
	context.Context
	looks  int
	cancel context.CancelFunc
}

func (e *expiring) Err() error {
	if e.looks > 0 {
		e.looks--
		return nil
	}
	return e.Context.Err()
}

func (e *expiring) Done() <-chan struct{} {
	e.cancel()
	return e.Context.Done()
}

// A binary that cannot be executed is reported with what to do, and leaves nothing
// behind.
func TestBadBinary(t *testing.T) {
	if _, err := New(Config{Binary: "/nonexistent/chrome", Root: shortTemp(t)}); !fault.Is(err, fault.ChromeMissing) {
		t.Errorf("no file: %v", err)
	}
	broken := filepath.Join(shortTemp(t), "chrome")
	if err := os.WriteFile(broken, []byte("not a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := newLauncher(t, broken)
	_, err := l.Start(within(t), Options{Dir: newDir(t, l, "b")})
	if !fault.Is(err, fault.ChromeMissing) || !strings.Contains(fault.MessageOf(err), "apt-get install chromium") {
		t.Errorf("not a program: %v", err)
	}
}

// Only the end of standard error is kept.
func TestStderrTail(t *testing.T) {
	script := filepath.Join(shortTemp(t), "chrome")
	text := "#!/bin/sh\ni=0; while [ $i -lt 2000 ]; do echo early $i >&2; i=$((i+1)); done\necho last words >&2\nexit 7\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, newLauncher(t, script), Options{})
	if err := p.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	exit := p.ExitState()
	if exit.Code != 7 || exit.Clean() || len(exit.Stderr) != tailBytes || !strings.HasSuffix(exit.Stderr, "\nlast words\n") {
		t.Errorf("code %d, %d bytes, ending in %q", exit.Code, len(exit.Stderr), exit.Stderr[max(0, len(exit.Stderr)-30):])
	}
}

// Processes that outlive Chrome's main process are ended too, even detached ones that
// ignore signals.
func TestLeftovers(t *testing.T) {
	script := filepath.Join(shortTemp(t), "chrome")
	text := "#!/bin/sh\ntrap '' TERM HUP INT\nsetsid sh -c 'trap \"\" TERM HUP; sleep 1000 & sleep 1000' >/dev/null 2>&1 &\nexit 0\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, newLauncher(t, script), Options{})
	if err := p.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	if !p.ExitState().Clean() {
		t.Errorf("ended with %+v", p.ExitState())
	}
}
