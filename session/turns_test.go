package session

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
)

// One user's calls run one at a time, those of two users side by side, and one who
// gives up leaves nothing behind.
func TestTurns(t *testing.T) {
	turns := newTurns(2)
	ctx := t.Context()
	gaveUp, cancel := context.WithCancel(ctx)
	cancel()
	first, err := turns.take(ctx, "alice")
	if err != nil {
		t.Fatal(err)
	}
	_, err = turns.take(gaveUp, "alice")
	wantCode(t, err, fault.Timeout)
	second, err := turns.take(ctx, "bob")
	if err != nil {
		t.Fatal(err)
	}
	_, err = turns.take(gaveUp, "carol") // every place is taken
	wantCode(t, err, fault.Timeout)
	waited := make(chan error, 1)
	go func() {
		leave, err := turns.take(ctx, "alice")
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
		t.Errorf("left behind: %d users, %d places", len(turns.users), len(turns.free))
	}
}

// Documents are compared and exported in turns.
func TestDocumentsAreReadInTurns(t *testing.T) {
	r := newRig(t, nil)
	a := r.imports(keeper, Import{Format: FormatPlaywright}, storageStateFile)
	leave, err := r.readings.take(t.Context(), keeper.UserID)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	for name, read := range map[string]func(context.Context) error{
		"diff": func(ctx context.Context) error {
			_, err := r.Diff(ctx, keeper, a.Snapshot.ID, a.Snapshot.ID, false)
			return err
		},
		"state": func(ctx context.Context) error {
			_, err := r.State(ctx, keeper, a.Snapshot.ID, Export{Format: FormatPlaywright})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		outcome := make(chan error, 1)
		go func() { outcome <- read(ctx) }()
		for r.readings.callers(keeper.UserID) < 2 {
			select {
			case err := <-outcome:
				t.Fatalf("%s did not wait: %v", name, err)
			case <-time.After(time.Millisecond):
			}
		}
		cancel()
		wantCode(t, <-outcome, fault.Timeout)
	}
}

func (t *turns) callers(userID string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.users[userID].callers
}
