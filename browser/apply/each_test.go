package apply

import (
	"context"
	"errors"
	"testing"
)

// When ctx ends, the call in progress and those after it get errNoTime. Earlier failures
// keep their own errors.
func TestInTurn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	broken := errors.New("broken")
	got := inTurn(ctx, 4, func(i int) error {
		switch i {
		case 0:
			return nil
		case 1:
			return broken
		default:
			cancel()
			return ctx.Err()
		}
	})
	for i, want := range []error{nil, broken, errNoTime, errNoTime} {
		if !errors.Is(got[i], want) {
			t.Errorf("%d: error %v, want %v", i, got[i], want)
		}
	}
}
