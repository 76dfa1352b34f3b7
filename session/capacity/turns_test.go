package capacity

import (
	"context"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// The calls of one user run one at a time, those of two users in parallel. A call that
// gives up leaves nothing behind.
func TestTurns(t *testing.T) {
	turns := NewTurns(2)
	ctx := t.Context()
	gaveUp, cancel := context.WithCancel(ctx)
	cancel()
	first, err := turns.Take(ctx, "alice")
	if err != nil {
		t.Fatal(err)
	}
	_, err = turns.Take(gaveUp, "alice")
	wantCode(t, err, fault.Timeout)
	second, err := turns.Take(ctx, "bob")
	if err != nil {
		t.Fatal(err)
	}
	_, err = turns.Take(gaveUp, "carol") // all turns are taken
	wantCode(t, err, fault.Timeout)
	waited := make(chan error, 1)
	go func() {
		leave, err := turns.Take(ctx, "alice")
		if err == nil {
			leave()
		}
		waited <- err
	}()
	first()
	second()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	turns.mu.Lock()
	defer turns.mu.Unlock()
	if len(turns.users) != 0 || len(turns.free) != 0 {
		t.Errorf("left behind: %d users, %d turns", len(turns.users), len(turns.free))
	}
}
