package api

import "github.com/stasisd/stasis/session/settings"

// The least and the most of each limit. With less, an empty Chrome does not start.
const (
	leastMemory, mostMemory       = 512 << 20, 1 << 50
	leastCPUs, mostCPUs           = 0.1, 1024
	leastProcesses, mostProcesses = 256, 1 << 22
	leastDisk, mostDisk           = 64 << 20, 1 << 50
)

// areLimits checks the limits of a create or of a user's settings; nil: there are none.
func areLimits(l *settings.Limits) error {
	if l == nil {
		return nil
	}
	if l.CPUs != nil && (*l.CPUs < leastCPUs || *l.CPUs > mostCPUs) {
		return invalid("limits.cpus", "must be %g to %d", leastCPUs, mostCPUs)
	}
	for _, limit := range []struct {
		name        string
		value       *int64
		least, most int64
	}{
		{"memory_bytes", l.Memory, leastMemory, mostMemory}, {"processes", l.Processes, leastProcesses, mostProcesses},
		{"disk_bytes", l.Disk, leastDisk, mostDisk},
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
