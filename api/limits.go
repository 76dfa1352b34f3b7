package api

import (
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/settings"
)

// areLimits checks the limits of a create or of a user's settings; nil: there are none.
func areLimits(l *settings.Limits) error {
	if l == nil {
		return nil
	}
	if l.CPUs != nil && *l.CPUs < browser.LeastCPUs {
		return invalid("limits.cpus", "must be at least %g", browser.LeastCPUs)
	}
	for _, limit := range []struct {
		name  string
		value *int64
		least int64
	}{{"memory_bytes", l.Memory, browser.LeastMemory}, {"processes", l.Processes, browser.LeastProcesses}, {"disk_bytes", l.Disk, browser.LeastDisk}} {
		if limit.value != nil && *limit.value < limit.least {
			return invalid("limits."+limit.name, "must be at least %d", limit.least)
		}
	}
	return nil
}
