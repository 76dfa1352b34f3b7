package launch

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// The nice values that are used here (sched(7)). The lower priority is a tenth of
// the ordinary one: with the lowest of all a tree would hardly come up beside
// pages that keep the processors busy.
const (
	ordinary = 0
	lower    = 10
)

// A kernel lets those who do not administer it set the share of a session ten
// times a second, all of them together. The share is given back in so many tries,
// this long apart.
const (
	shareTries = 100
	sharePause = 20 * time.Millisecond
)

// Background gives the tree a small share of the processors, or its ordinary
// one again. A kernel that divides them among sessions first (sched(7), "The
// autogroup feature") takes the share of the tree's session, in which all of
// Chrome is but the renderers. One that does not, as in a container with a share
// of its own, takes the processes' nice values: of the user that is Chrome's
// alone, for only root may raise them again. Where neither is to be had nothing
// happens, and the tree runs as others do. Giving the share back may wait, for a
// session is going to run in it; taking it does not.
func (p *Process) Background(on bool) {
	nice, tries := ordinary, shareTries
	if on {
		nice, tries = lower, 1
	}
	for errors.Is(p.yield(nice), syscall.EAGAIN) {
		if tries--; tries == 0 {
			return
		}
		time.Sleep(sharePause)
	}
}

// yield sets both. The error is that of the session's share.
func (p *Process) yield(nice int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return nil
	}
	if p.dir.UID != os.Geteuid() {
		_ = syscall.Setpriority(syscall.PRIO_USER, p.dir.UID, nice)
	}
	// The warden leads the session.
	return os.WriteFile(procPath(p.warden.Process.Pid, "autogroup"), []byte(strconv.Itoa(nice)), 0)
}
