//go:build linux

package main

import (
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library"
)

// retentionFlags are the retention policy of users whose settings have none.
type retentionFlags struct {
	KeepLast     int64         `help:"Keep this many of a user's newest snapshots. If none of --keep-last, --keep-within and --keep-labelled is given, all are kept." default:"0"`
	KeepWithin   period        `help:"Keep snapshots that are at most this much older than the user's newest." default:"0s"`
	KeepLabelled bool          `help:"Keep snapshots with a label."`
	PruneGrace   time.Duration `help:"No policy removes a snapshot younger than this, so that a client that has just saved can still use it." default:"1h"`
}

func (f retentionFlags) check() error {
	const op = "serve.retention"
	switch {
	case f.KeepLast < 0:
		return fault.New(fault.Config, op, "--keep-last: must be 0 or more")
	case f.KeepWithin < 0, f.KeepWithin > 0 && f.KeepWithin < period(time.Second):
		return fault.New(fault.Config, op, "--keep-within: must be 0, or a second or more")
	case f.PruneGrace < 0:
		return fault.New(fault.Config, op, "--prune-grace: must be 0 or more")
	}
	return nil
}

// retention returns the policy; nil if no rule is given.
func (f retentionFlags) retention() *library.Retention {
	seconds := int64(f.KeepWithin.Duration() / time.Second)
	r := library.Retention{KeepLabelled: &f.KeepLabelled}
	if f.KeepLast > 0 {
		r.KeepLast = &f.KeepLast
	}
	if seconds > 0 {
		r.KeepWithinSeconds = &seconds
	}
	if !r.Keeps() {
		return nil
	}
	return &r
}
