package launch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stasisd/stasis/browser/cgroup"
	"github.com/stasisd/stasis/browser/netns"
	"github.com/stasisd/stasis/fault"
)

// Process is one running Chrome with its whole process tree. Its methods are safe for
// concurrent use.
type Process struct {
	warden   *exec.Cmd
	lifeline *os.File // open as long as Chrome may run
	cut      sync.Once
	pipe     *pipe
	errors   *tail
	dir      *Dir
	flags    []string
	link     *netns.Link // to its network namespace; nil: it has none
	pid      int         // of Chrome's main process
	done     chan struct{}
	group    *cgroup.Group // nil: none
	priority priority

	held    atomic.Bool // Freeze or Pause has stopped the tree, or is about to
	mu      sync.Mutex  // held by Freeze, Thaw, Signal and readers of the tree
	main    *os.Process // a handle, so that its PID cannot be reused; nil before and after
	frozen  bool
	stopped []proc // the processes that Freeze has stopped
	gone    bool   // the warden was waited for, so its PID may be reused
	exit    ExitState
}

// ExitState says how Chrome's main process ended.
type ExitState struct {
	Code   int            // exit status, if Signal is 0; -1 when it is not known
	Signal syscall.Signal // the signal that ended it, or 0
	Stderr string         // the last 8 KiB of standard error, for the log; it may contain page addresses
}

// Clean reports whether Chrome exited on its own with status 0, as it does after
// Browser.close.
func (e ExitState) Clean() bool { return e.Code == 0 && e.Signal == 0 }

// supervise owns the process until its tree has ended. It sends the first report to
// first, and then closes first. Without a report it only closes first.
func (p *Process) supervise(reports io.ReadCloser, first chan<- report) {
	exit, reported := ExitState{Code: -1}, false
	for in, n := json.NewDecoder(reports), 0; ; n++ {
		var r report
		if err := in.Decode(&r); err != nil {
			break // the warden has ended
		}
		if n == 0 {
			first <- r
		}
		if r.PID != 0 {
			// The limits must not stop what ends the tree. The kernel takes up to 20 ms for
			// this, beside the start of Chrome.
			_ = p.group.Release(p.warden.Process.Pid) // if it fails, the warden counts within the limits
		}
		reported = reported || r.Exited || r.Errno != 0 || r.Unconfined != "" || r.HoldFailed != "" || r.NetworkFailed != ""
		if r.Exited {
			exit.Code, exit.Signal = r.Code, syscall.Signal(r.Signal)
		}
	}
	close(first)
	_ = reports.Close() // only read from
	p.mu.Lock()
	err := p.warden.Wait()
	p.gone, p.frozen, p.stopped = true, false, nil
	if p.main != nil {
		_ = p.main.Release() // otherwise its file stays open until the next garbage collection
		p.main = nil
	}
	p.mu.Unlock()
	if err != nil || !reported {
		// The warden was killed. Its Chrome dies with it, but the rest of the tree may not.
		_ = killMatching(context.Background(), p.dir.runsHere) // fails only if its context ends
	}
	p.cutLifeline()
	_ = p.group.Remove() // the next start of the daemon tries again
	p.link.Close()
	exit.Stderr = p.errors.String()
	p.mu.Lock()
	p.exit = exit
	p.mu.Unlock()
	p.dir.vacate()
	close(p.done)
}

// cutLifeline makes the warden kill the tree if it still runs.
func (p *Process) cutLifeline() {
	p.cut.Do(func() { _ = p.lifeline.Close() }) // a pipe's end: no data can be lost
}

// Release lets Chrome open its databases ([Options.Hold]): their files are in place.
func (p *Process) Release() error {
	_, err := p.lifeline.Write([]byte{releaseByte})
	return fault.Wrap(err, fault.BrowserFailed, "launch.release", "Chrome has ended")
}

// Pipe returns Chrome's CDP pipe: raw bytes in which each message ends with a NUL.
// Reading returns io.EOF when Chrome has ended. The caller closes the pipe. Closing more
// than once is harmless, and unblocks a reader and a writer.
func (p *Process) Pipe() io.ReadWriteCloser { return p.pipe }

// Flags returns the flags that Chrome was started with, except those that contain paths
// of this machine.
func (p *Process) Flags() []string { return slices.Clone(p.flags) }

// PID returns the ID of Chrome's main process.
func (p *Process) PID() int { return p.pid }

// Done is closed when no process of the tree remains.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitState returns how Chrome ended. It is valid only after Done is closed.
func (p *Process) ExitState() ExitState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Wait returns nil when the whole tree has ended, or a Timeout fault that wraps ctx's
// error.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, "launch.wait", "")
	}
}

// killDeadline bounds the wait for a killed tree. It takes milliseconds, or seconds on a
// busy machine. A process that is stuck in the kernel may never end.
const killDeadline = 15 * time.Second

// Kill ends the whole tree with SIGKILL, frozen or not. It waits until the tree has
// ended, at most killDeadline. If that or ctx ends first, the kill continues. It can be
// called again.
func (p *Process) Kill(ctx context.Context) error {
	p.cutLifeline()
	p.group.End()
	ctx, cancel := context.WithTimeout(ctx, killDeadline)
	defer cancel()
	return p.Wait(ctx)
}

// Signal sends a signal to Chrome's main process. It returns os.ErrProcessDone if that
// has ended.
func (p *Process) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.main == nil {
		return os.ErrProcessDone
	}
	return p.main.Signal(sig)
}

// openHandle opens a handle on Chrome's main process, unless the tree has ended already.
func (p *Process) openHandle(pid int) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid = pid
	if !p.gone {
		p.main, err = os.FindProcess(pid)
	}
	return err
}

// Processes returns the PIDs of the tree's processes without zombies, parents first. It
// returns none after the tree has ended.
func (p *Process) Processes() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []int
	for _, q := range p.tree() {
		ids = append(ids, q.pid)
	}
	return ids
}

// CPUTime returns the CPU time that the tree's running processes, and the children that
// they have reaped, have used so far.
func (p *Process) CPUTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum time.Duration
	for _, q := range p.tree() {
		sum += q.cpu
	}
	return sum
}

// tree returns the running processes. The caller holds mu.
func (p *Process) tree() []proc {
	if p.gone {
		return nil
	}
	var living []proc
	for _, q := range descendants(p.warden.Process.Pid) {
		if !q.dead() {
			living = append(living, q)
		}
	}
	return living
}

// pipe combines the daemon's ends of Chrome's two pipes.
type pipe struct {
	r, w *os.File
	once sync.Once
	err  error
}

func (p *pipe) Read(b []byte) (int, error)  { return p.r.Read(b) }
func (p *pipe) Write(b []byte) (int, error) { return p.w.Write(b) }

// WriteNow writes as much as fits without blocking. It implements mux.NonblockingWriter.
func (p *pipe) WriteNow(b []byte) (n int) {
	raw, err := p.w.SyscallConn()
	if err != nil {
		return 0
	}
	// A full or closed pipe accepts nothing. The next Write shows which it was.
	_ = raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), b)
		return true
	})
	return max(0, n)
}

func (p *pipe) Close() error {
	p.once.Do(func() { p.err = errors.Join(p.r.Close(), p.w.Close()) })
	return p.err
}
