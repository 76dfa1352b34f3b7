package pool

import (
	"context"
	"errors"
	"sync"
	"time"
)

// endDeadline bounds how long a pool waits for the end of Chromes that nobody else
// waits for. A kill takes milliseconds, and seconds on a busy machine.
const endDeadline = 10 * time.Second

// end ends Chromes. Nobody is there to hear that one cannot be ended: its kill goes
// on, and its warden outlives the daemon for it.
func end[T Chrome](chromes ...T) {
	ctx, cancel := context.WithTimeout(context.Background(), endDeadline)
	defer cancel()
	_ = killAll(ctx, chromes)
}

// killAll ends Chromes side by side, so that one that hangs keeps no other, and
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
