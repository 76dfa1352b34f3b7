package launch

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leftoverGrace is how long processes may outlive Chrome's main process. Its network
// service writes cookies to disk until the very end.
const leftoverGrace = 3 * time.Second

// Exit statuses of a warden. Only its daemon sees them.
const (
	wardenOK     = 0
	wardenMisuse = 2
)

// WardenMain runs the whole program of a warden process (see the package documentation)
// and returns its exit status. A main function calls it before anything else if its first
// argument is [WardenArg]. args are the arguments after that one; there must be none.
func WardenMain(args []string) int {
	// PR_SET_PDEATHSIG applies to the thread that starts Chrome, so this goroutine keeps
	// its thread until the process ends.
	runtime.LockOSThread()
	if len(args) == 1 && args[0] == stageArg {
		return stageMain()
	}
	closeOnExec()
	reports := json.NewEncoder(os.NewFile(fdReports, "reports"))
	lifeline := bufio.NewReader(os.NewFile(fdLifeline, "lifeline"))
	line, err := lifeline.ReadBytes('\n')
	var o order
	if err != nil || len(args) != 0 || json.Unmarshal(line, &o) != nil {
		return wardenMisuse
	}
	w := warden{self: os.Getpid(), reports: reports, children: make(chan os.Signal, 1), cut: make(chan struct{})}
	if err := w.prepare(); err != nil {
		w.send(failed(err))
		return wardenOK
	}
	if len(o.Grants) > 0 && o.Network == nil { // else the stage does it: pasta needs other files
		if err := confine(o.Grants, o.Denied); err != nil {
			w.send(report{Unconfined: err.Error()})
			return wardenOK
		}
	}
	var h *hold
	if o.Hold {
		if h, err = newHold(); err != nil {
			w.send(report{HoldFailed: err.Error()})
			return wardenOK
		}
	}
	var first report
	if o.Until != 0 {
		if w.lapse, err = newLapse(w.self, o.Until); err != nil {
			w.send(failed(err))
			return wardenOK
		}
	}
	if err = limitProcesses(o); err == nil {
		first, err = w.start(o)
	}
	if err != nil {
		first = failed(err)
	}
	if first != (report{}) {
		w.send(first)
		killDescendants(w.self)
		return wardenOK
	}
	w.send(report{PID: w.main})
	go w.read(lifeline, h)
	w.guard()
	return wardenOK
}

// read reads the lifeline after the order, until it ends or has a byte that means the same.
func (w *warden) read(lifeline *bufio.Reader, h *hold) {
	defer close(w.cut)
	_, extends := w.lapse.channels()
	for {
		b, err := lifeline.ReadByte()
		switch {
		case err != nil:
			return
		case b == releaseByte && h != nil:
			go h.release()
			h = nil
		case b == extendByte && extends != nil:
			line, err := lifeline.ReadBytes('\n')
			e, ok := parseExtension(line)
			if err != nil || !ok {
				return
			}
			extends <- e
		default:
			return
		}
	}
}

// closeOnExec keeps all open files from Chrome, which gets its two pipes explicitly. That
// includes files that the daemon itself inherited.
func closeOnExec() {
	open, _ := os.ReadDir("/proc/self/fd") // without /proc nothing here works
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

type warden struct {
	self, main int
	pasta      int // 0: there is none
	reports    *json.Encoder
	children   chan os.Signal // SIGCHLD
	cut        chan struct{}  // closed when the lifeline is
	lapse      *lapse         // nil: there is no deadline
	mainGone   bool
	crashed    bool // by a signal
}

// failed returns the report of a start that failed with a system error.
func failed(err error) report {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		errno = syscall.EIO
	}
	return report{Errno: errno}
}

// prepare makes this process the subreaper of all Chrome processes, and makes it survive
// signals from a terminal.
func (w *warden) prepare() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/self/comm", []byte(wardenName), 0); err != nil {
		return err
	}
	// Catch the signals instead of ignoring them: an ignored signal stays ignored in
	// Chrome, a caught one does not.
	signal.Notify(make(chan os.Signal, 1),
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	signal.Notify(w.children, syscall.SIGCHLD)
	return nil
}

// start starts Chrome. Landlock confines threads, and a thread may then signal only
// processes that it started itself. So this thread starts Chrome and also kills it. What the
// stage reports instead of Chrome's start is returned.
func (w *warden) start(o order) (report, error) {
	if o.Network != nil {
		return w.startStage(o)
	}
	attr := &syscall.ProcAttr{
		Dir: o.Dir, Env: o.Env,
		Files: []uintptr{0, 2, 2, fdRequests, fdAnswers},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	if o.UID >= 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.UID)}
	}
	pid, err := syscall.ForkExec(o.Path, append([]string{o.Path}, o.Args...), attr)
	if err != nil {
		return report{}, err
	}
	w.main = pid
	// While these are open here, neither side would see the other's end.
	return report{}, errors.Join(syscall.Close(fdRequests), syscall.Close(fdAnswers))
}

// guard returns when no descendant remains. It lists the tree again after every reaped
// process: a process that an earlier listing missed is then a child of this one.
func (w *warden) guard() {
	var grace <-chan time.Time
	cut, killing := w.cut, false
	expired, extends := w.lapse.channels()
	for w.reap() {
		if killing = killing || w.crashed; killing { // after a crash the other processes cannot finish their work
			killDescendants(w.self)
		}
		if w.mainGone && w.onlyPasta() {
			killing = true
			killDescendants(w.self)
		}
		if w.mainGone && grace == nil {
			grace = time.After(leftoverGrace)
		}
		select {
		case <-w.children:
		case <-cut:
			cut, killing = nil, true
		case <-grace:
			killing = true
		case <-expired:
			w.lapse.stop()
		case <-w.lapse.again():
			w.lapse.stop()
		case e := <-extends:
			w.lapse.extend(e)
		}
	}
}

// onlyPasta reports whether pasta is the last process of the tree: it does not end by itself.
func (w *warden) onlyPasta() bool {
	if w.pasta == 0 {
		return false
	}
	for _, p := range descendants(w.self) {
		if p.pid != w.pasta && !p.dead() {
			return false
		}
	}
	return true
}

// reap reaps every child that has ended and reports whether any still runs.
func (w *warden) reap() bool {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return false // ECHILD
		case pid == 0:
			return true
		case pid == w.main:
			w.mainGone = true
			end := report{Exited: true}
			if status.Signaled() {
				w.crashed = true
				end.Signal = int(status.Signal())
			} else {
				end.Code = status.ExitStatus()
			}
			w.send(end)
		}
	}
}

// send sends a report. It fails only if the daemon is dead, and then the lifeline is
// closed too.
func (w *warden) send(r report) { _ = w.reports.Encode(r) }
