package settings

import (
	"context"
	"strconv"

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

// SessionLimits returns the limits of a user's settings, if they have some, and those of the daemon.
// A session may use at most the lower of each two.
func (u *Users) SessionLimits(ctx context.Context, userID string) (own, daemon browser.Limits, err error) {
	set, err := u.For(ctx, userID)
	if err != nil && !fault.Is(err, fault.UserNotFound) {
		return own, daemon, err
	}
	return set.Limits.Browser(), u.cfg.Limits, nil
}

// CheckLimits returns invalid_field if limits exceed those of the user or of the daemon. The
// error has the lowest, and whose it is.
func CheckLimits(asked, user, daemon browser.Limits) error {
	largest := browser.Limits{Memory: 1 << 50, CPUs: 1024, Processes: 1 << 22, Disk: 1 << 50} // where neither has a limit
	most := user.Within(daemon).Within(largest)
	for _, l := range []struct {
		name                      string
		asked, most, user, daemon float64
	}{
		{"memory_bytes", float64(asked.Memory), float64(most.Memory), float64(user.Memory), float64(daemon.Memory)},
		{"cpus", asked.CPUs, most.CPUs, user.CPUs, daemon.CPUs},
		{"processes", float64(asked.Processes), float64(most.Processes), float64(user.Processes), float64(daemon.Processes)},
		{"disk_bytes", float64(asked.Disk), float64(most.Disk), float64(user.Disk), float64(daemon.Disk)},
	} {
		if l.asked <= l.most {
			continue
		}
		whose := ""
		switch l.most {
		case l.daemon:
			whose = ", the daemon's limit of each session"
		case l.user:
			whose = ", the limit in the user's settings"
		}
		return fault.New(fault.InvalidField, "session.limits", "limits.%s: must be at most %s%s", l.name, strconv.FormatFloat(l.most, 'f', -1, 64), whose)
	}
	return nil
}
