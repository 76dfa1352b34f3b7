package session

import (
	"context"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore/archives"
)

// busyTurns has no free turn.
type busyTurns struct{ asked chan string }

func (b busyTurns) Take(ctx context.Context, userID string) (func(), error) {
	b.asked <- userID
	<-ctx.Done()
	return nil, fault.New(fault.Timeout, "", "")
}

// countedTurns counts the turns that are not given back.
type countedTurns struct {
	turns
	taken, left int
}

func (c *countedTurns) Take(ctx context.Context, userID string) (func(), error) {
	leave, err := c.turns.Take(ctx, userID)
	if err != nil {
		return nil, err
	}
	c.taken++
	return func() { leave(); c.left++ }, nil
}

// Calls that need much memory or time take turns, one call of a user at a time.
func TestCostlyCallsWait(t *testing.T) {
	r := newRig(t, nil)
	a := r.importFile(keeper, importer.Request{Format: library.FormatPlaywright}, storageStateFile)
	long := `{"cookies":[],"origins":[{"origin":"https://a.example","localStorage":[{"name":"k","value":"` + strings.Repeat("x", archives.LargeState) + `"}]}]}`
	large := r.importFile(keeper, importer.Request{Format: library.FormatPlaywright}, long)
	id := r.create(keeper, nil).ID
	if _, err := r.Send(t.Context(), keeper, id, agent.MessageRequest{Type: "QUESTION", Content: "Which?"}); err != nil {
		t.Fatal(err)
	}
	runs, err := r.Runs(t.Context(), keeper, id)
	if err != nil {
		t.Fatal(err)
	}
	counted := &countedTurns{turns: r.large}
	r.large = counted
	restore := func(ctx context.Context, snapshot string) error {
		_, err := r.Create(ctx, keeper, newCreate(func(c *request.Create) { c.FromEnvironment = snapshot }))
		return err
	}
	for name, call := range map[string]struct {
		turns *turns
		do    func(context.Context) error
	}{
		"diff": {&r.readings, func(ctx context.Context) error {
			_, err := r.library.Diff(ctx, keeper, a.Snapshot.ID, a.Snapshot.ID, false)
			return err
		}},
		"state": {&r.readings, func(ctx context.Context) error {
			_, err := r.library.State(ctx, keeper, a.Snapshot.ID, library.Export{Format: library.FormatPlaywright})
			return err
		}},
		"messages": {&r.masks, func(ctx context.Context) error {
			_, err := r.Messages(ctx, keeper, id, 0, false)
			return err
		}},
		"events": {&r.masks, func(ctx context.Context) error {
			_, err := r.RunEvents(ctx, keeper, id, runs[0].ID, 0, 10, false)
			return err
		}},
		"extension": {&r.packages, func(ctx context.Context) error {
			_, _, err := r.uploaded.PutExtension(ctx, keeper, strings.NewReader("no zip"))
			return err
		}},
		"restore": {&r.large, func(ctx context.Context) error { return restore(ctx, large.Snapshot.ID) }},
	} {
		whose := keeper.UserID
		if call.turns == &r.large {
			whose = profiles.OwnerOf(whose)
		}
		free, busy := *call.turns, busyTurns{asked: make(chan string, 1)}
		*call.turns = busy
		ctx, cancel := context.WithCancel(t.Context())
		outcome := make(chan error, 1)
		go func() { outcome <- call.do(ctx) }()
		select {
		case err := <-outcome:
			t.Fatalf("%s did not wait: %v", name, err)
		case asked := <-busy.asked:
			if asked != whose {
				t.Errorf("%s takes a turn of %q", name, asked)
			}
		}
		if name == "restore" {
			if err := restore(t.Context(), a.Snapshot.ID); err != nil {
				t.Errorf("a small restore waits for a large one: %v", err)
			}
		}
		cancel()
		wantCode(t, <-outcome, fault.Timeout)
		*call.turns = free
	}
	if err := restore(t.Context(), large.Snapshot.ID); err != nil || counted.taken != 1 || counted.left != 1 {
		t.Errorf("a large restore: %v; %d turns taken, %d given back", err, counted.taken, counted.left)
	}
}
