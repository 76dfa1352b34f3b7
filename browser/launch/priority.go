package launch

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Nice values (sched(7)). lower gives a tenth of the ordinary share. With the lowest
// priority of all, a tree would hardly start beside pages that keep the processors busy.
const (
	ordinary = 0
	lower    = 10

	lowerShare = 10 // percent, of a control group
)

// priority says why a tree has less than its ordinary share.
type priority struct {
	mu         sync.Mutex
	background bool // nobody waits for it
	busy       bool // it has used more than an equal part
}

// The kernel limits how often unprivileged processes set a session's share: ten times a
// second, for all of them together. Restoring the share is tried shareTries times,
// sharePause apart.
const (
	shareTries = 100
	sharePause = 20 * time.Millisecond
)

// Background gives the tree a small share of the processors, or its ordinary share again.
// Some kernels divide processors among sessions first (sched(7), "The autogroup
// feature"). There it sets the share of the tree's session, which contains all of Chrome
// except the renderers. Otherwise, as in a container with its own share, it sets the nice
// values of the processes. It does that only if Chrome has its own user, since only root
// may raise them again. A Chrome with a control group gets its share by that. If neither
// works, the tree runs with ordinary priority. Restoring the share may block, because a
// session is about to use the tree; reducing it does not.
func (p *Process) Background(on bool) {
	p.priority.mu.Lock()
	defer p.priority.mu.Unlock()
	p.priority.background = on
	if p.share() {
		return
	}
	nice, tries := ordinary, shareTries
	if on {
		nice, tries = lower, 1
	}
	for errors.Is(p.setNice(nice), syscall.EAGAIN) {
		if tries--; tries == 0 {
			return
		}
		time.Sleep(sharePause)
	}
}

// Busy gives the tree a small share of the processors, or its ordinary share again, if it has
// a control group. See [Process.Background] for other reasons of a small share.
func (p *Process) Busy(on bool) {
	p.priority.mu.Lock()
	defer p.priority.mu.Unlock()
	p.priority.busy = on
	p.share()
}

// Yield gives the tree only what others leave of the processors, or its share again, if it
// has a control group.
func (p *Process) Yield(on bool) { p.group.Yield(on) }

// share sets the share of the control group. It reports whether there is one with shares. The
// caller holds the lock.
func (p *Process) share() bool {
	if p.priority.background || p.priority.busy {
		return p.group.Share(lowerShare)
	}
	return p.group.Share(100)
}

// UsedCPU is [Process.CPUTime] by the control group; false if it has no control
// group. Finding the tree among all processes of the machine would take longer.
func (p *Process) UsedCPU() (used time.Duration, known bool) {
	if used, known = p.group.CPUTime(); known {
		return used, true
	}
	for _, pid := range p.group.Processes() {
		line, err := readProc(procPath(pid, "stat"))
		if err != nil {
			continue // it has ended
		}
		if q, err := parseStat(pid, string(line)); err == nil {
			used, known = used+q.cpu, true
		}
	}
	return used, known
}

// setNice sets the nice value of both. The error is that of the session's share.
func (p *Process) setNice(nice int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return nil
	}
	if p.dir.UID != os.Geteuid() {
		_ = syscall.Setpriority(syscall.PRIO_USER, p.dir.UID, nice)
	}
	// The warden is the leader of the session.
	return os.WriteFile(procPath(p.warden.Process.Pid, "autogroup"), []byte(strconv.Itoa(nice)), 0)
}
