package launch

import (
	"errors"
	"os"
	"strconv"
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
	share := 100
	if on {
		share = lowerShare
	}
	if p.group.Share(share) {
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
