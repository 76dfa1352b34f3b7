package capacity

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds how long a test waits for something that should happen at once.
const patience = 10 * time.Second

// await waits until holds returns true.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting for: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Errorf("got %q (%v), want %q", got, err, code)
	}
}
