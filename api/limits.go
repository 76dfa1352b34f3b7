package api

import (
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/settings"
)

// The most of each limit.
const (
	mostMemory    = 1 << 50
	mostCPUs      = 1024
	mostProcesses = 1 << 22
	mostDisk      = 1 << 50
)

// areLimits checks the limits of a create or of a user's settings; nil: there are none.
func areLimits(l *settings.Limits) error {
	if l == nil {
		return nil
	}
	if l.CPUs != nil && (*l.CPUs < browser.LeastCPUs || *l.CPUs > mostCPUs) {
		return invalid("limits.cpus", "must be %g to %d", browser.LeastCPUs, mostCPUs)
	}
	for _, limit := range []struct {
		name        string
		value       *int64
		least, most int64
	}{
		{"memory_bytes", l.Memory, browser.LeastMemory, mostMemory}, {"processes", l.Processes, browser.LeastProcesses, mostProcesses},
		{"disk_bytes", l.Disk, browser.LeastDisk, mostDisk},
	} {
		if limit.value == nil {
			continue
		}
		if err := within("limits."+limit.name, *limit.value, limit.least, limit.most); err != nil {
			return err
		}
	}
	return nil
}
