package main

import (
	"context"
	"time"
)

// When the run's own processes are at rest: they take less than a tick of
// processor time (10 ms) in a look. quietDeadline bounds the wait on a machine
// where they never are.
const (
	quietLook     = 60 * time.Millisecond
	quietDeadline = 8 * time.Second
)

// settle waits until nothing of an earlier measure is at work any more: closing
// browsers, spares that are started anew.
func settle(ctx context.Context) error {
	deadline := time.Now().Add(quietDeadline)
	tick := time.NewTicker(quietLook)
	defer tick.Stop()
	before := ownTree().ticks()
	for time.Now().Before(deadline) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		after := ownTree().ticks()
		if after-before <= 1 {
			return nil
		}
		before = after
	}
	return nil
}
