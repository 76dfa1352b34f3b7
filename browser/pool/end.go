package pool

import (
	"context"
	"errors"
	"sync"
	"time"
)

// endDeadline bounds how long a pool waits for Chromes to end when no caller waits. A
// kill takes milliseconds, or seconds on a busy machine.
const endDeadline = 10 * time.Second

// end ends Chromes. An error is dropped: the kill continues, and a Chrome's warden
// outlives the daemon for that.
func end[T Chrome](chromes ...T) {
	ctx, cancel := context.WithTimeout(context.Background(), endDeadline)
	defer cancel()
	_ = killAll(ctx, chromes)
}

// killAll ends Chromes in parallel, so that one that hangs does not delay the others, and
// waits for all.
func killAll[T Chrome](ctx context.Context, chromes []T) error {
	errs := make([]error, len(chromes))
	var killing sync.WaitGroup
	for i, c := range chromes {
		killing.Go(func() { errs[i] = c.Kill(ctx) })
	}
	killing.Wait()
	return errors.Join(errs...)
}
