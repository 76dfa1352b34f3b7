package renewal

import (
	"context"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/restore"
)

// Renewal is a scheduled check that is running. If a create wants the same environment or
// needs its slot, the check makes way for it.
type Renewal struct {
	plan
	ctx      context.Context // ends when the check is abandoned; a save that has begun ignores it
	cancel   context.CancelFunc
	patience time.Duration
	done     chan struct{} // closed when the check has ended completely

	mu     sync.Mutex
	opened bool // its Chrome has started and may have visited the site
	timer  *time.Timer
}

// UserID returns the user whose default is checked.
func (r *Renewal) UserID() string { return r.userID }

// SnapshotID returns the snapshot that is checked.
func (r *Renewal) SnapshotID() string { return r.snapshot.ID }

// Environment returns what a session of this default would start from.
func (r *Renewal) Environment() restore.Environment {
	p := r.plan
	return restore.Environment{UserID: p.userID, Source: &restore.Source{Type: restore.SourceUserDefault, ID: p.userID}, Snapshot: &p.snapshot, Version: p.current.Version}
}

func newRenewal(ctx context.Context, p plan, patience time.Duration) *Renewal {
	r := &Renewal{plan: p, patience: patience, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// end ends the check and releases the callers that wait for it.
func (r *Renewal) end() {
	r.mu.Lock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.cancel()
	close(r.done)
}

// markOpened records that the check's Chrome has started. It returns an error if the
// check was abandoned before.
func (r *Renewal) markOpened() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = true
	return r.ctx.Err()
}

// GiveWay waits until the check has ended, for a create that needs its environment. A
// check whose Chrome has not started is abandoned at once. Otherwise the site may have
// replaced the token, so the check gets some time to save the new one. A save that has
// begun is finished. If ctx ends first, the error is timeout.
func (r *Renewal) GiveWay(ctx context.Context) error {
	r.mu.Lock()
	switch {
	case !r.opened:
		r.cancel()
	case r.timer == nil:
		r.timer = time.AfterFunc(r.patience, r.cancel)
	}
	r.mu.Unlock()
	return r.Await(ctx)
}

// Await waits until the check has ended. If ctx ends first, the error is timeout.
func (r *Renewal) Await(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, "session.renewal", "a scheduled login check of this environment is running; try again later")
	}
}
