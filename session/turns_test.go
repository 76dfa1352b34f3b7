package session

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
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

// What takes much memory or time is done in turns, one call of a user at a time.
func TestCostlyCallsWait(t *testing.T) {
	r := newRig(t, nil)
	a := r.imports(keeper, Import{Format: FormatPlaywright}, storageStateFile)
	long := `{"cookies":[],"origins":[{"origin":"https://a.example","localStorage":[{"name":"k","value":"` + strings.Repeat("x", largeState) + `"}]}]}`
	large := r.imports(keeper, Import{Format: FormatPlaywright}, long)
	id := r.create(keeper, nil).ID
	if _, err := r.Say(t.Context(), keeper, id, Say{Type: "QUESTION", Content: "Which?"}); err != nil {
		t.Fatal(err)
	}
	runs, err := r.Runs(t.Context(), keeper, id)
	if err != nil {
		t.Fatal(err)
	}
	restore := func(ctx context.Context, snapshot string) error {
		_, err := r.Create(ctx, keeper, Create{FromEnvironment: snapshot})
		return err
	}
	for name, call := range map[string]struct {
		turns *turns
		do    func(context.Context) error
	}{
		"diff": {r.readings, func(ctx context.Context) error {
			_, err := r.Diff(ctx, keeper, a.Snapshot.ID, a.Snapshot.ID, false)
			return err
		}},
		"state": {r.readings, func(ctx context.Context) error {
			_, err := r.State(ctx, keeper, a.Snapshot.ID, Export{Format: FormatPlaywright})
			return err
		}},
		"messages": {r.masks, func(ctx context.Context) error {
			_, err := r.Messages(ctx, keeper, id, 0, false)
			return err
		}},
		"events": {r.masks, func(ctx context.Context) error {
			_, err := r.RunEvents(ctx, keeper, id, runs[0].ID, 0, 10, false)
			return err
		}},
		"extension": {r.packages, func(ctx context.Context) error {
			_, _, err := r.PutExtension(ctx, keeper, strings.NewReader("no zip"))
			return err
		}},
		"restore": {r.large, func(ctx context.Context) error { return restore(ctx, large.Snapshot.ID) }},
	} {
		whose := keeper.UserID
		if call.turns == r.large {
			whose = profiles.OwnerOf(whose)
		}
		leave, err := call.turns.take(t.Context(), whose)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		outcome := make(chan error, 1)
		go func() { outcome <- call.do(ctx) }()
		for call.turns.callers(whose) < 2 {
			select {
			case err := <-outcome:
				t.Fatalf("%s did not wait: %v", name, err)
			case <-time.After(time.Millisecond):
			}
		}
		if name == "restore" {
			if err := restore(t.Context(), a.Snapshot.ID); err != nil {
				t.Errorf("a small restore waits for a large one: %v", err)
			}
		}
		cancel()
		wantCode(t, <-outcome, fault.Timeout)
		leave()
	}
	if err := restore(t.Context(), large.Snapshot.ID); err != nil || len(r.large.users) != 0 || len(r.large.free) != 0 {
		t.Errorf("a large restore: %v; %d users and %d places are left behind", err, len(r.large.users), len(r.large.free))
	}
}

func (t *turns) callers(userID string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.users[userID]; u != nil {
		return u.callers
	}
	return 0
}
