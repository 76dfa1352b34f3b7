package events_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// blockedStore is a catalogue that does not answer until release is closed.
type blockedStore struct {
	events.Store
	release chan struct{}
}

func (s blockedStore) BeginRun(_ context.Context, r profiles.Run) (profiles.Run, error) {
	<-s.release
	return r, nil
}

func (s blockedStore) EndRun(ctx context.Context, _ profiles.RunEnd, _ profiles.EventBounds) (profiles.Run, error) {
	return profiles.Run{}, ctx.Err()
}

// End does not wait for a catalogue that never answers. The writer's goroutine ends when
// the catalogue answers.
func TestEndDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := blockedStore{release: make(chan struct{})}
		w := events.NewJournal(catalogue, plain{}, time.Now, slog.New(slog.DiscardHandler)).Begin("s")
		w.End(t.Context(), profiles.RunCompleted, "asked")
		w.End(t.Context(), profiles.RunCompleted, "asked")
		close(catalogue.release)
		synctest.Wait() // fails if the writer's goroutine has not ended
	})
}
