package launch

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Chrome whose daemon does not extend its deadline is stopped, whatever the daemon does with
// it, and continues after an extension.
func TestDeadline(t *testing.T) {
	l := newLauncher(t, "")
	l.deadline = &Deadline{}
	l.deadline.Extend(BootTime() + time.Hour)
	p := start(t, l, Options{URL: "about:blank"})
	c := newClient(t, p)
	c.version()
	// A deadline does not move back, so this one is sent behind its back.
	pass := func() {
		t.Helper()
		p.extend(BootTime())
		await(t, "every process has stopped", func() bool { still, moving := states(p); return still > 0 && moving == 0 })
	}
	extend := func() { l.deadline.Extend(BootTime() + 2*time.Hour) }
	pass()
	if err := p.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := p.Thaw(within(t)); err != nil {
		t.Fatal(err)
	}
	await(t, "every process has stopped again", func() bool { _, moving := states(p); return moving == 0 })
	extend()
	c.version()
	await(t, "every process runs", func() bool { still, _ := states(p); return still == 0 })

	// What the daemon keeps frozen stays so.
	pass()
	if err := p.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	extend()
	<-time.After(200 * time.Millisecond) // nothing may happen in this time
	if _, moving := states(p); moving != 0 {
		t.Errorf("%d processes run after an extension", moving)
	}
	if err := p.Thaw(within(t)); err != nil {
		t.Fatal(err)
	}
	c.version()

	// The deadline passes by itself.
	p.extend(BootTime() + 300*time.Millisecond)
	await(t, "every process has stopped", func() bool { still, moving := states(p); return still > 0 && moving == 0 })
	if err := p.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
}

// A warden past its deadline looks at the processes of the machine only as long as one of its tree
// runs: many wardens may be past their deadlines for as long as a database is away.
func TestLapseLooksAtItsTree(t *testing.T) {
	parent := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000 & sleep 1000 & wait")
	parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	parent.Cancel = func() error { return syscall.Kill(-parent.Process.Pid, syscall.SIGKILL) }
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	l := &lapse{self: parent.Process.Pid}
	await(t, "two children are stopped", func() bool { l.stop(); return l.settled && len(l.tree) == 2 })

	marked := func() bool { return len(l.tree) == 3 }
	l.tree = append(l.tree, proc{pid: 1 << 30})
	if l.stop(); !marked() {
		t.Error("it looks for the tree although all have stopped")
	}
	if err := syscall.Kill(l.tree[1].pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, "the continued child is stopped again", func() bool { l.stop(); return !marked() && l.settled && len(l.tree) == 2 })
	_ = parent.Cancel()
	_ = parent.Wait() // killed
}

// A process that another thread starts while the main thread has stopped is stopped too.
func TestLapseStopsWhatThreadsStart(t *testing.T) {
	parent := exec.CommandContext(t.Context(), "/proc/self/exe", helperArg, "start-processes", "")
	parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	parent.Cancel = func() error { return syscall.Kill(-parent.Process.Pid, syscall.SIGKILL) }
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	l := &lapse{self: os.Getpid()}
	mine := func() []proc { return slices.DeleteFunc(descendants(parent.Process.Pid), proc.dead) }
	await(t, "processes are started", func() bool { return len(mine()) > 0 })
	for range 100 {
		await(t, "the tree is stopped", func() bool { l.stop(); return l.settled })
		for _, p := range mine() {
			if !slices.ContainsFunc(l.tree, func(q proc) bool { return q.pid == p.pid }) {
				t.Fatalf("process %d is not among the %d of the tree", p.pid, len(l.tree))
			}
		}
		for _, p := range l.tree {
			_ = syscall.Kill(p.pid, syscall.SIGCONT)
		}
		n := len(mine())
		await(t, "more processes are started", func() bool { return len(mine()) != n })
	}
	_ = parent.Cancel()
	_ = parent.Wait() // killed
}

// startProcesses starts processes from many threads, as fast as it can. Each ends soon. It does
// so without Go's exec, whose parent waits until its child runs: a child that has been stopped
// before would hold it.
func startProcesses() error {
	failed := make(chan error)
	life := unix.Timespec{Nsec: int64(50 * time.Millisecond)}
	for range 8 {
		go func() {
			for {
				pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
				if errno != 0 {
					failed <- errno
					return
				}
				if pid == 0 {
					_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&life)), 0, 0)
					_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
				}
				if _, err := unix.Wait4(int(pid), nil, 0, nil); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}
