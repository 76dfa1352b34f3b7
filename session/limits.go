package session

import (
	"fmt"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// crashReason returns why Chrome ended. A limit that it has just reached explains a crash: the
// kernel kills a process, or refuses one that Chrome cannot do without.
func crashReason(l *liveSession) profiles.Reason {
	why, unreported := l.chrome.Usage().Reached()
	for _, r := range unreported {
		l.runs.Record(events.LimitReached, events.Fields{"limit": r.Limit, "value": r.Value})
	}
	for _, r := range why {
		switch r.Limit {
		case browser.LimitMemory:
			return profiles.ReasonMemoryLimit.With(fmt.Sprintf("Chrome crashed: the session reached its limit of memory, %d MiB", r.Value>>20))
		case browser.LimitProcesses:
			return profiles.ReasonTaskLimit.With(fmt.Sprintf("Chrome crashed: the session reached its limit of processes and threads, %d", r.Value))
		}
	}
	return profiles.ReasonCrashed.With(chromeCrashed)
}

// overDisk is the ending of a session that has filled its part of the disk.
func overDisk(limit int64) ending {
	return ending{cause: causeLimit, reason: profiles.ReasonDiskLimit.With(
		fmt.Sprintf("the session's files took more of the disk than its limit, %d MiB; what was saved before is kept", limit>>20))}
}
