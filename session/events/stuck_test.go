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

// stuck is a catalogue that does not answer until goOn is closed.
type stuck struct {
	events.Store
	goOn chan struct{}
}

func (s stuck) BeginRun(_ context.Context, r profiles.Run) (profiles.Run, error) {
	<-s.goOn
	return r, nil
}

func (s stuck) EndRun(ctx context.Context, _ profiles.RunEnd, _ profiles.EventBounds) (profiles.Run, error) {
	return profiles.Run{}, ctx.Err()
}

// End does not wait for a catalogue that never answers. The writer's goroutine ends when
// the catalogue answers.
func TestEndDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := stuck{goOn: make(chan struct{})}
		w := events.NewJournal(catalogue, plain{}, time.Now, slog.New(slog.DiscardHandler)).Begin("s")
		w.End(t.Context(), profiles.RunCompleted, "asked")
		w.End(t.Context(), profiles.RunCompleted, "asked")
		close(catalogue.goOn)
		synctest.Wait() // fails if the writer's goroutine has not ended
	})
}
