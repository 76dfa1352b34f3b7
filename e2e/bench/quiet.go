package main

import (
	"context"
	"time"
)

// The run's own processes are idle if they use at most one tick of processor time (10
// ms) in each of a few checks. quietDeadline bounds the wait if they never become idle.
const (
	quietLook     = 60 * time.Millisecond
	quietLooks    = 3
	quietDeadline = 10 * time.Second
)

// settle waits until all work of earlier measures has ended, such as closing browsers
// and starting spares.
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
