package session

import (
	"context"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/restore"
)

// renewal is a scheduled check that is under way. A create that wants the same
// environment, or its place, has it give way.
type renewal struct {
	plan
	ctx      context.Context // ends when it is given up; the save does not heed it
	cancel   context.CancelFunc
	patience time.Duration
	done     chan struct{} // closed when all of it is over

	mu     sync.Mutex
	opened bool // its browser may have been at the site
	timer  *time.Timer
}

// enterRenewal begins a check, unless somebody holds the environment: a session
// that is live or on its way, a parked Chrome, or another check. Creates meet it
// from then on.
func (s *Service) enterRenewal(ctx context.Context, p plan) *renewal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.capacity.HasParked(p.snapshot.ID) || s.checks[p.userID] > 0 || s.holderOf("", p.origin()) != nil {
		return nil
	}
	r := &renewal{plan: p, patience: s.renewals.patience, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	s.renewing = r
	return r
}

// origin is what a session would start from in its place.
func (p plan) origin() restore.Environment {
	return restore.Environment{UserID: p.userID, Source: &restore.Source{Type: restore.SourceUserDefault, ID: p.userID}, Snapshot: &p.snapshot, Version: p.current.Version}
}

// leaveRenewal ends it; who waits for it goes on.
func (s *Service) leaveRenewal(r *renewal) {
	s.mu.Lock()
	s.renewing = nil
	s.mu.Unlock()
	r.mu.Lock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.cancel()
	close(r.done)
}

// open notes that its browser is up. An error says that it was given up before.
func (r *renewal) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = true
	return r.ctx.Err()
}

// giveWay waits until the check is over, for one who needs what it has. One whose
// browser is not up is given up at once; one that is at the site may have been
// given a new token in place of the old one, and has some time to save that; a
// save that has begun is finished.
func (r *renewal) giveWay(ctx context.Context) error {
	r.mu.Lock()
	switch {
	case !r.opened:
		r.cancel()
	case r.timer == nil:
		r.timer = time.AfterFunc(r.patience, r.cancel)
	}
	r.mu.Unlock()
	return r.over(ctx)
}

// over waits until the check is over.
func (r *renewal) over(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, "session.renewal", "a scheduled login check of this environment is under way")
	}
}

// takePlace takes a place for a session. A scheduled check gives its place up
// rather than that a session finds none.
func (s *Service) takePlace(ctx, wait context.Context, r Create) error {
	err := s.capacity.Acquire(ctx, false)
	if !fault.Is(err, fault.TooManySessions) {
		return err
	}
	s.mu.Lock()
	other := s.renewing
	s.mu.Unlock()
	if other != nil {
		if err := other.giveWay(ctx); err != nil {
			return err
		}
	}
	return s.capacity.Acquire(wait, r.Wait > 0)
}

// enterCheck notes a check on request of a user's default, after a scheduled one
// that is under way. No scheduled one begins until leave is called.
func (s *Service) enterCheck(ctx context.Context, userID string) (leave func(), err error) {
	for {
		s.mu.Lock()
		other := s.renewing
		if other == nil || other.userID != userID {
			s.checks[userID]++
			s.mu.Unlock()
			return func() { s.leaveCheck(userID) }, nil
		}
		s.mu.Unlock()
		if err := other.over(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *Service) leaveCheck(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checks[userID]--; s.checks[userID] == 0 {
		delete(s.checks, userID)
	}
}
