package capture

import (
	"context"
	"errors"
	"time"
)

// layDeadline bounds the laying of one kind, at about 0.15 s for each origin,
// which costs Chrome a process. It is well below what a restore may take: what
// there was no time for is told, and the rest comes back.
const layDeadline = 20 * time.Second

// errNoTime is for an origin whose turn did not come.
var errNoTime = errors.New("there was no time")

// each does something for each of n origins in a stub, and returns how each
// went: see inTurn. It fails only where Chrome does not answer.
func each(ctx context.Context, conn Conn, n int, do func(ctx context.Context, s *stub, i int) error) ([]error, error) {
	if n == 0 {
		return nil, nil
	}
	s, err := openStub(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	limited, cancel := context.WithTimeout(ctx, layDeadline)
	defer cancel()
	return inTurn(limited, n, func(i int) error { return do(limited, s, i) }), ctx.Err()
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
