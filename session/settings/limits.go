package settings

import (
	"context"
	"fmt"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
)

// Limits bound what one session's browser uses. It is the stored record and the wire format,
// also of a create.
type Limits struct {
	Memory    *int64   `json:"memory_bytes"` // nil: the daemon's; for a create the user's
	CPUs      *float64 `json:"cpus"`
	Processes *int64   `json:"processes"` // and threads
	Disk      *int64   `json:"disk_bytes"`
}

// Browser converts the setting for package browser.
func (l *Limits) Browser() browser.Limits {
	if l == nil {
		return browser.Limits{}
	}
	return browser.Limits{Memory: ValueOrZero(l.Memory), CPUs: ValueOrZero(l.CPUs), Processes: ValueOrZero(l.Processes), Disk: ValueOrZero(l.Disk)}
}

// SessionLimits returns what a session of a user may use: the limits of the settings, if they have
// some, and those of the daemon and the settings together.
func (u *Users) SessionLimits(ctx context.Context, userID string) (own, all browser.Limits, err error) {
	set, err := u.For(ctx, userID)
	if err != nil && !fault.Is(err, fault.UserNotFound) {
		return own, all, err
	}
	own = set.Limits.Browser()
	return own, own.Within(u.cfg.Limits), nil
}

// CheckLimits returns invalid_field if limits exceed others. whose says whose the others are.
func CheckLimits(asked, most browser.Limits, whose string) error {
	for _, l := range []struct {
		name        string
		asked, most float64
	}{
		{"memory_bytes", float64(asked.Memory), float64(most.Memory)}, {"cpus", asked.CPUs, most.CPUs},
		{"processes", float64(asked.Processes), float64(most.Processes)}, {"disk_bytes", float64(asked.Disk), float64(most.Disk)},
	} {
		if l.most > 0 && l.asked > l.most {
			return fault.New(fault.InvalidField, "session.limits", "limits.%s: must be at most %s, the limit of %s", l.name, fmt.Sprintf("%.15g", l.most), whose)
		}
	}
	return nil
}
