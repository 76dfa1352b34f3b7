package claims_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/claims"
)

// flaky is a store whose releases fail, and that counts those that succeed.
type flaky struct {
	claims.Store
	mu       sync.Mutex
	away     bool
	released map[string]int
	done     chan string
}

var errAway = errors.New("the database is away")

func (f *flaky) release(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return errAway
	}
	f.released[what]++
	f.done <- what
	return nil
}

func (f *flaky) back() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = false
}

func (f *flaky) ReleaseSession(_ context.Context, id string) error  { return f.release(id) }
func (f *flaky) LeaveCheck(_ context.Context, user string) error    { return f.release(user) }
func (f *flaky) ReleaseSnapshot(_ context.Context, id string) error { return f.release(id) }
func (f *flaky) ReleaseArchive(_ context.Context, archive, snapshot string) error {
	return f.release(archive + snapshot)
}

// ClaimSession claims, although it may return an error.
func (f *flaky) ClaimSession(_ context.Context, id, _ string) (*profiles.SessionClaim, error) {
	if id == "unknown" {
		return nil, errAway
	}
	return nil, nil
}

// What is released while the database is away is released when it is back, except what was
// claimed again meanwhile. A claim that fails is released too: its answer may be lost.
func TestReleases(t *testing.T) {
	store := &flaky{away: true, released: map[string]int{}, done: make(chan string, 10)}
	r := claims.NewReleases(store, time.Millisecond)
	ctx := t.Context()
	for _, err := range []error{
		r.ReleaseSession(ctx, "ended"), r.ReleaseSession(ctx, "again"), r.LeaveCheck(ctx, "ann"), r.ReleaseSnapshot(ctx, "hold"), r.ReleaseArchive(ctx, "a", "s"),
	} {
		if !errors.Is(err, errAway) {
			t.Errorf("while the database is away: %v", err)
		}
	}
	if _, err := r.ClaimSession(ctx, "again", "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ClaimSession(ctx, "unknown", "key"); !errors.Is(err, errAway) {
		t.Errorf("a claim while the database is away: %v", err)
	}
	store.back()
	got := map[string]bool{}
	for range 5 {
		got[<-store.done] = true
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"ended", "ann", "hold", "as", "unknown"} {
		if !got[what] || store.released[what] != 1 {
			t.Errorf("%s was released %d times", what, store.released[what])
		}
	}
	if store.released["again"] != 0 {
		t.Error("a session that was claimed again was released")
	}
}
