package apply

import (
	"context"
	"errors"
	"time"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// applyDeadline bounds the writing of one kind of state. An origin takes about 0.15 s,
// because it costs Chrome a process. The limit is well below the time that a restore may
// take: the report lists what there was no time for, and the rest is restored.
const applyDeadline = 20 * time.Second

// errNoTime is the error for an origin that was not reached before the deadline.
var errNoTime = errors.New("there was no time")

// each calls do for each of n origins in a hidden tab, and returns their errors: see
// inTurn. It fails only if Chrome does not answer.
func each(ctx context.Context, conn hiddentab.Conn, n int, do func(ctx context.Context, t *hiddentab.Tab, i int) error) ([]error, error) {
	if n == 0 {
		return nil, nil
	}
	t, err := hiddentab.Open(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer t.Close(ctx)
	limited, cancel := context.WithTimeout(ctx, applyDeadline)
	defer cancel()
	return inTurn(limited, n, func(i int) error { return do(limited, t, i) }), ctx.Err()
}

// inTurn calls do for 0 to n-1 and returns the errors. When ctx ends, the call in
// progress and all later ones get errNoTime.
func inTurn(ctx context.Context, n int, do func(i int) error) []error {
	outcome := make([]error, n)
	for i := range n {
		outcome[i] = errNoTime
		if ctx.Err() != nil {
			continue
		}
		if err := do(i); err == nil || ctx.Err() == nil {
			outcome[i] = err
		}
	}
	return outcome
}
