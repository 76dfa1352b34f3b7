package launch

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/cgroup"
	"github.com/stasisd/stasis/fault"
)

// Limits reports whether each Chrome has a control group, and whether that limits processors.
func (l *Launcher) Limits() (enforced, processors bool) {
	return l.groups != nil, l.groups != nil && l.groups.HasCPU()
}

// newGroup makes the control group of a Chrome; nil if the launcher has none.
func (l *Launcher) newGroup(o Options) (*cgroup.Group, error) {
	if l.groups == nil {
		return nil, nil
	}
	group, err := l.groups.New(o.Dir.Name(), o.Limits)
	return group, fault.Wrap(err, fault.BrowserFailed, "launch.group", "a control group with Chrome's limits cannot be made")
}

// Limit replaces the limits of Chrome's control group, if it has one. If Chrome uses more
// memory than the new limit, the error is [cgroup.ErrInUse].
func (p *Process) Limit(l cgroup.Limits) error { return p.group.Limit(l) }

// Counts returns what Chrome's control group counts; zero if it has none. It can be called
// after the tree has ended.
func (p *Process) Counts() cgroup.Counts { return p.group.Counts() }

// limitProcesses limits this process and those that it starts.
func limitProcesses(o order) error {
	for _, limit := range []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_NOFILE, o.Files}, {unix.RLIMIT_NPROC, o.Tasks}} {
		if limit.most == 0 {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(limit.resource, &now); err != nil {
			return err
		}
		now.Max = min(now.Max, limit.most)
		now.Cur = min(now.Cur, now.Max)
		if err := syscall.Setrlimit(limit.resource, &now); err != nil {
			return err
		}
	}
	return nil
}
