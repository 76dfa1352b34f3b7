package launch

import (
	"context"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stasisd/stasis/fault"
)

// Kill does not wait for ever for a tree that does not end, and has closed the lifeline
// by then.
func TestKillDeadline(t *testing.T) {
	warden, lifeline, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = warden.Close() })
	synctest.Test(t, func(t *testing.T) {
		p := &Process{lifeline: lifeline, done: make(chan struct{})}
		if err := p.Kill(context.Background()); !fault.Is(err, fault.Timeout) {
			t.Errorf("Kill: %v", err)
		}
	})
	if n, err := warden.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("the lifeline is still open")
	}
}
