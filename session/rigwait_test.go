package session

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot/faultstore"
)

// await waits until a condition holds.
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

// recovered runs Recover and waits until all rescues, which are retried, are made.
func recovered(ctx context.Context, s *Service) error {
	if err := s.Recover(ctx); err != nil {
		return err
	}
	for s.Counts().Rescuing > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// kill ends the rig's daemon like kill -9: nothing is saved, no record is written,
// Chromes die, directories stay.
func (r *rig) kill() {
	r.t.Helper()
	r.store.FailAt(1, faultstore.Dead, errBroken)
	r.catalogue.fails(errBroken, "Commit", "EndSession")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.Close(ctx) // it has no time
	r.store.FailAt(0, faultstore.Refuse, nil)
	r.catalogue.works()
}
