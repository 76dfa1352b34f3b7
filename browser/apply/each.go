package apply

import (
	"context"
	"errors"
	"time"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// applyDeadline bounds the writing of one kind, at about 0.15 s for each origin,
// which costs Chrome a process. It is well below what a restore may take: the
// report says what there was no time for, and the rest comes back.
const applyDeadline = 20 * time.Second

// errNoTime is for an origin whose turn did not come.
var errNoTime = errors.New("there was no time")

// each does something for each of n origins in a hidden tab, and returns how each
// went: see inTurn. It fails only where Chrome does not answer.
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

// inTurn does something for each of n and returns how each went: errNoTime from
// the one on that was under way when ctx ended.
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
