package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/login/renewal"
)

// renewing is what login checks ask of a Service.
type renewing struct{ svc *Service }

// EnterRenewal notes a scheduled check, unless somebody holds the environment: a session
// that is live or on its way, a parked Chrome, or another check. Creates meet it
// from then on.
func (f renewing) EnterRenewal(r *renewal.Renewal) bool {
	s := f.svc
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.capacity.HasParked(r.SnapshotID()) || s.checks[r.UserID()] > 0 || s.holderOf("", r.Environment()) != nil {
		return false
	}
	s.renewing = r
	return true
}

// LeaveRenewal ends that.
func (f renewing) LeaveRenewal(*renewal.Renewal) {
	f.svc.mu.Lock()
	defer f.svc.mu.Unlock()
	f.svc.renewing = nil
}

// EnterCheck notes a check on request of a user's default, after a scheduled one
// that is under way. No scheduled one begins until leave is called.
func (f renewing) EnterCheck(ctx context.Context, userID string) (leave func(), err error) {
	s := f.svc
	for {
		s.mu.Lock()
		other := s.renewing
		if other == nil || other.UserID() != userID {
			s.checks[userID]++
			s.mu.Unlock()
			return func() { s.leaveCheck(userID) }, nil
		}
		s.mu.Unlock()
		if err := other.Await(ctx); err != nil {
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

// Work is ctx until the daemon stops, which waits until leave is called. Where it stops
// already, that is shutting_down.
func (f renewing) Work(ctx context.Context) (_ context.Context, leave func(), err error) {
	s := f.svc
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, nil, fault.New(fault.ShuttingDown, "session.check", "the daemon is shutting down")
	}
	s.work.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		s.work.Done()
	}, nil
}

// hurry has a scheduled check give way to a create, which waits for that.
func (s *Service) hurry(ctx context.Context, r *renewal.Renewal) error {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hurrying += n
	}
	count(1)
	defer count(-1)
	return r.GiveWay(ctx)
}
