package browser

import (
	"errors"

	"github.com/stasisd/stasis/browser/cgroup"
	"github.com/stasisd/stasis/fault"
)

// Limits are what the browser of a session may use. 0 is no limit.
type Limits struct {
	Memory    int64   `json:"memory_bytes,omitempty"`
	CPUs      float64 `json:"cpus,omitempty"`       // processors, such as 1.5
	Processes int64   `json:"processes,omitempty"`  // processes and threads
	Disk      int64   `json:"disk_bytes,omitempty"` // of the run directory: the profile, downloads and uploads
}

// The least limits, in the units of [Limits]. With less, an empty Chrome does not start.
const (
	LeastMemory    = 512 << 20
	LeastCPUs      = 0.1
	LeastProcesses = 256
	LeastDisk      = 64 << 20
)

// The names of limits, in events and errors.
const (
	LimitMemory    = "memory"
	LimitProcesses = "processes"
	LimitDisk      = "disk"
)

// Within returns the lower of each two limits.
func (l Limits) Within(other Limits) Limits {
	return Limits{lower(l.Memory, other.Memory), lower(l.CPUs, other.CPUs), lower(l.Processes, other.Processes), lower(l.Disk, other.Disk)}
}

func lower[N int64 | float64](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// group returns those limits that a control group has.
func (l Limits) group() cgroup.Limits {
	return cgroup.Limits{Memory: l.Memory, CPUs: l.CPUs, Tasks: l.Processes}
}

// CanLimit returns nil if limits that a create or a user's settings ask for can be put in
// place. No session starts without them.
func (s *Starter) CanLimit(l Limits) error {
	enforced, processors := s.Launcher.Limits()
	for _, limit := range []struct {
		name          string
		asked, enough bool
	}{{"memory_bytes", l.Memory > 0, enforced}, {"processes", l.Processes > 0, enforced}, {"cpus", l.CPUs > 0, processors}} {
		if limit.asked && !limit.enough {
			return fault.New(fault.Unsupported, "browser.limits", "limits.%s: this daemon cannot limit it, because it has no control groups for that; its log says why", limit.name)
		}
	}
	return nil
}

// SetLimits replaces the limits of a Chrome that waited for its session. Those of the daemon
// hold too.
func (b *Browser) SetLimits(l Limits) error {
	l = l.Within(b.starter.Limits)
	err := b.process.Limit(l.group())
	if errors.Is(err, cgroup.ErrInUse) {
		return fault.Wrap(err, fault.BrowserFailed, "browser.limits", "the browser uses more memory than limits.memory_bytes allows")
	}
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, "browser.limits", "the limits cannot be put in place")
	}
	b.usage.set(l)
	return nil
}

// SetLimits is [Browser.SetLimits], before the tabs load.
func (s *Standby) SetLimits(l Limits) error { return s.b.SetLimits(l) }

// limit puts the session's limits of addresses and of use in place.
func limit(b *Browser, o Options) error {
	if err := b.LimitEgress(o.Egress); err != nil {
		return err
	}
	return b.SetLimits(o.Limits)
}
