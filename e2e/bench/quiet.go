package main

import (
	"context"
	"time"
)

// When the run's own processes are at rest: in a few looks, one after the
// other, they take no more than a tick of processor time (10 ms) each.
// quietDeadline bounds the wait on a machine where they never are.
const (
	quietLook     = 60 * time.Millisecond
	quietLooks    = 3
	quietDeadline = 10 * time.Second
)

// settle waits until nothing of an earlier measure is at work any more: closing
// browsers, spares that are started anew.
func settle(ctx context.Context) error {
	deadline := time.Now().Add(quietDeadline)
	tick := time.NewTicker(quietLook)
	defer tick.Stop()
	quiet, before := 0, ownTree().ticks()
	for quiet < quietLooks && time.Now().Before(deadline) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		after := ownTree().ticks()
		if quiet++; after-before > 1 {
			quiet = 0
		}
		before = after
	}
	return nil
}
