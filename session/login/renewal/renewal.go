package renewal

import (
	"context"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/restore"
)

// Renewal is a scheduled check that is under way. A create that wants the same
// environment, or its place, has it give way.
type Renewal struct {
	plan
	ctx      context.Context // ends when it is given up; the save does not heed it
	cancel   context.CancelFunc
	patience time.Duration
	done     chan struct{} // closed when all of it is over

	mu     sync.Mutex
	opened bool // its browser may have been at the site
	timer  *time.Timer
}

// UserID is whose default it checks.
func (r *Renewal) UserID() string { return r.userID }

// SnapshotID is the snapshot that this is.
func (r *Renewal) SnapshotID() string { return r.snapshot.ID }

// Environment is what a session would start from in its place.
func (r *Renewal) Environment() restore.Environment {
	p := r.plan
	return restore.Environment{UserID: p.userID, Source: &restore.Source{Type: restore.SourceUserDefault, ID: p.userID}, Snapshot: &p.snapshot, Version: p.current.Version}
}

func newRenewal(ctx context.Context, p plan, patience time.Duration) *Renewal {
	r := &Renewal{plan: p, patience: patience, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// end ends the check for those who wait for it.
func (r *Renewal) end() {
	r.mu.Lock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.cancel()
	close(r.done)
}

// open notes that the check's Chrome is up. It is an error if the check was given up
// before.
func (r *Renewal) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = true
	return r.ctx.Err()
}

// GiveWay waits until the check is over, for a create that needs its environment. A
// check whose Chrome is not up is given up at once. Else the site may have given it a
// new token in place of the old one, so it gets some time to save that. A save that
// has begun is finished. When ctx ends first it is timeout.
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

// Await waits until the check is over; timeout when ctx ends first.
func (r *Renewal) Await(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, "session.renewal", "a scheduled login check of this environment is under way")
	}
}
