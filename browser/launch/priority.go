package launch

import (
	"os"
	"syscall"
)

// The ends of the scale of nice values that are used here (sched(7)).
const (
	ordinary = 0
	weakest  = 19
)

// Background gives the tree what is left of the processors, or its ordinary
// share again. A kernel that divides them among sessions first (sched(7), "The
// autogroup feature") takes the share of the tree's session, in which all of
// Chrome is but the renderers. One that does not, as in a container with a share
// of its own, takes the processes' nice values: of the user that is Chrome's
// alone, for only root may raise them again. Where neither is to be had nothing
// happens, and the tree runs as others do.
func (p *Process) Background(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	nice, share := ordinary, "0"
	if on {
		nice, share = weakest, "19"
	}
	// The warden leads the session.
	_ = os.WriteFile(procPath(p.warden.Process.Pid, "autogroup"), []byte(share), 0)
	if p.dir.UID != os.Geteuid() {
		_ = syscall.Setpriority(syscall.PRIO_USER, p.dir.UID, nice)
	}
}
