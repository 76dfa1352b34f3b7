package main

import (
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library"
)

// retentionFlags are which snapshots stay of users whose settings do not say.
type retentionFlags struct {
	KeepLast     int64         `help:"Keep so many of a user's newest snapshots. Without this and the next two all are kept." default:"0"`
	KeepWithin   time.Duration `help:"Keep snapshots made so long before the user's newest." default:"0s"`
	KeepLabelled bool          `help:"Keep snapshots with a label."`
	PruneGrace   time.Duration `help:"Age up to which no policy takes a snapshot, so that who has just saved can still name it." default:"1h"`
}

func (f retentionFlags) check() error {
	const op = "serve.retention"
	switch {
	case f.KeepLast < 0:
		return fault.New(fault.Config, op, "--keep-last must be 0 or more")
	case f.KeepWithin < 0, f.KeepWithin > 0 && f.KeepWithin < time.Second:
		return fault.New(fault.Config, op, "--keep-within must be 0, or a second or more")
	case f.PruneGrace < 0:
		return fault.New(fault.Config, op, "--prune-grace must be 0 or more")
	}
	return nil
}

// retention is the policy, nil where no rule is given.
func (f retentionFlags) retention() *library.Retention {
	seconds := int64(f.KeepWithin / time.Second)
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
