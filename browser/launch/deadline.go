package launch

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime returns the time since the machine was started. It continues while the machine is
// suspended, is the same in every process, and nobody can set it.
func BootTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // fails only for a clock that does not exist
	return time.Duration(now.Nano())
}

// Deadline is the time until which the Chromes of a daemon may run. A warden that is past it
// freezes its Chrome, also if the daemon is stopped, and thaws it when the daemon extends the
// deadline. Chromes that start before the first extension have none. The zero value is ready
// to use. Its methods are safe for concurrent use, and do not wait.
type Deadline struct {
	mu        sync.Mutex
	until     time.Duration // as BootTime counts
	processes map[*Process]struct{}
}

// Extend moves the deadline to a time as [BootTime] counts. It never moves back.
func (d *Deadline) Extend(until time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = max(d.until, until)
	for p := range d.processes {
		p.extend(d.until)
	}
}

// current returns the deadline for an order; 0 if there is none.
func (d *Deadline) current() time.Duration {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.until
}

// add makes the deadline apply to a process that has started with one, until it has ended.
func (d *Deadline) add(p *Process, first time.Duration) {
	if first == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.processes == nil {
		d.processes = map[*Process]struct{}{}
	}
	d.processes[p] = struct{}{}
	p.extend(d.until)
	go func() {
		<-p.done
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.processes, p)
	}()
}

// extend sends the deadline to the warden. It says too whether the daemon itself keeps the
// Chrome frozen; if that changes meanwhile, the next extension corrects it.
func (p *Process) extend(until time.Duration) {
	line := fmt.Appendf(nil, "%c%d %t\n", extendByte, until, p.held.Load())
	raw, err := p.lifeline.SyscallConn()
	if err != nil {
		return
	}
	// A line of this size is written whole or not at all. If the pipe is full, its warden is
	// stopped, and gets no deadline.
	_ = raw.Write(func(fd uintptr) bool { _, _ = syscall.Write(int(fd), line); return true })
}

// extension is what a warden gets of a deadline.
type extension struct {
	until time.Duration
	held  bool
}

func parseExtension(line []byte) (e extension, ok bool) {
	n, _ := fmt.Sscanf(string(line), "%d %t\n", &e.until, &e.held)
	return e, n == 2
}

// stopPause is the time between two looks at a tree that must not run.
const stopPause = 50 * time.Millisecond

// lapse is the state of a warden with a deadline. A nil lapse has none.
type lapse struct {
	self    int
	timer   int            // a file of timerfd_create(2), of the clock of BootTime
	expired chan struct{}  // has a value after the deadline
	extends chan extension // from the lifeline
	until   time.Duration
	over    bool
	stopped []proc // those that this warden has stopped, parents first
	tree    []proc // the processes of the tree at the last look
	settled bool   // all of the tree had stopped, and no other process can have joined it
}

// newLapse returns the state for a deadline. Its timer runs.
func newLapse(self int, until time.Duration) (*lapse, error) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &lapse{self: self, timer: timer, expired: make(chan struct{}), extends: make(chan extension)}
	go func() {
		var times [8]byte
		for {
			if _, err := unix.Read(timer, times[:]); err == nil {
				l.expired <- struct{}{}
			} else if err != unix.EINTR {
				return
			}
		}
	}()
	return l, l.set(until)
}

func (l *lapse) set(until time.Duration) error {
	l.until = until
	// A time of zero would stop the timer.
	at := unix.NsecToTimespec(max(int64(until), 1))
	return unix.TimerfdSettime(l.timer, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: at}, nil)
}

// extend applies an extension.
func (l *lapse) extend(e extension) {
	_ = l.set(e.until) // fails only for a time that is not valid
	if e.until <= BootTime() {
		return
	}
	l.over, l.settled = false, false
	if e.held {
		return // those that were stopped here too are the daemon's to continue
	}
	for i := len(l.stopped) - 1; i >= 0; i-- {
		if q := l.stopped[i]; !q.hasEnded() {
			_ = syscall.Kill(q.pid, syscall.SIGCONT) // fails only when the process has just ended
		}
	}
	l.stopped = nil
}

// stop stops every process of the tree that runs, if the deadline has passed. To find the tree
// takes a look at all processes of the machine, and many wardens may be past their deadlines for
// long. So a tree that has settled is looked at alone.
func (l *lapse) stop() {
	if l.over = BootTime() >= l.until; !l.over {
		return
	}
	if l.settled && !slices.ContainsFunc(l.tree, proc.runs) {
		return
	}
	// A process may start another one after its main thread has stopped. When all threads have,
	// the next listing has everything that they started.
	still := len(l.tree) > 0 && !slices.ContainsFunc(l.tree, func(p proc) bool { return !stopped(p.pid) })
	sent := map[proc]bool{}
	for fresh := true; fresh; {
		fresh = false
		l.tree = descendants(l.self)
		for _, p := range l.tree {
			id := proc{pid: p.pid, start: p.start}
			if p.dead() || p.state == 'T' || sent[id] {
				continue
			}
			sent[id], fresh = true, true
			_ = syscall.Kill(p.pid, syscall.SIGSTOP)
			l.stopped = append(l.stopped, p)
		}
	}
	l.settled = still && len(sent) == 0
}

// again returns a channel for the next look at a tree that must not run: the daemon may have
// continued it.
func (l *lapse) again() <-chan time.Time {
	if l == nil || !l.over {
		return nil
	}
	return time.After(stopPause)
}

// channels returns the timer's channel and that of extensions.
func (l *lapse) channels() (<-chan struct{}, chan extension) {
	if l == nil {
		return nil, nil
	}
	return l.expired, l.extends
}
