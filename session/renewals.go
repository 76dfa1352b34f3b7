package session

import (
	"context"
	"sync"
	"time"
)

// How scheduled login checks are spread.
const (
	renewalPause    = 5 * time.Second  // before a user is looked at again: after a check, or where there was no room for one
	renewalHeld     = time.Minute      // where somebody holds the environment
	renewalLook     = 10 * time.Minute // at the latest: clocks are set, also back, and machines sleep
	renewalBetween  = 2 * time.Second  // between two tries to save what a check found
	renewalPatience = 10 * time.Second // of a create, with a check that has its browser
)

// renewals keep the logins of users alive whose settings say how often: each
// default is opened, checked and saved anew, one after the other. One goroutine
// owns the order; that is made of what the catalogue knows, so that a daemon that
// starts goes on where the last one was.
type renewals struct {
	svc      *Service
	ctx      context.Context
	cancel   context.CancelFunc
	wake     chan struct{}
	wg       sync.WaitGroup
	patience time.Duration
	between  time.Duration // of the tries of a save

	mu    sync.Mutex
	turns map[string]*turn // by user
}

// turn says when a user is looked at next, renewalLook after the last time at the
// latest; nothing is due before.
type turn struct{ at time.Time }

// due is when it is, at a time. One that lies further ahead than any is put was
// put before the clock was set back.
func (t *turn) due(now time.Time) time.Time {
	if t.at.Sub(now) > renewalLook {
		return now
	}
	return t.at
}

func newRenewals(s *Service) *renewals {
	k := &renewals{svc: s, wake: make(chan struct{}, 1), patience: renewalPatience, between: renewalBetween, turns: map[string]*turn{}}
	k.ctx, k.cancel = context.WithCancel(s.ctx)
	return k
}

// begin finds the users, and starts.
func (k *renewals) begin(ctx context.Context) error {
	users, err := k.svc.Catalogue.UsersWithSettings(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		set, err := settingsOf(u)
		if err != nil {
			k.svc.Log.Warn("a user's settings cannot be read", "error", err)
			continue
		}
		k.told(u.ID, set)
	}
	if k.svc.cfg.MaxSessions < 2 && len(k.turns) > 0 {
		k.svc.Log.Warn("scheduled login checks are never made with --max-sessions 1: the last place is a session's", "users", len(k.turns))
	}
	k.wg.Go(k.run)
	return nil
}

// told takes in a user's settings.
func (k *renewals) told(userID string, set Settings) {
	k.mu.Lock()
	if set.every() > 0 {
		k.turns[userID] = &turn{}
	} else {
		delete(k.turns, userID)
	}
	k.mu.Unlock()
	k.look()
}

// look has it looked whether something is due. It does not wait.
func (k *renewals) look() {
	select {
	case k.wake <- struct{}{}:
	default: // it will
	}
}

// stop begins no further check and gives one up that is under way, but for its
// save; wait waits for that.
func (k *renewals) stop() { k.cancel() }

func (k *renewals) wait() { k.wg.Wait() }

func (k *renewals) run() {
	later := time.NewTimer(0)
	defer later.Stop()
	for {
		select {
		case <-k.wake:
		case <-later.C:
		case <-k.ctx.Done():
			return
		}
		later.Reset(k.tend())
	}
}

// tend makes what is due, and returns when to look again.
func (k *renewals) tend() time.Duration {
	for k.ctx.Err() == nil {
		now := k.svc.Now()
		userID, t := k.first(now)
		if t == nil {
			break
		}
		if wait := t.due(now).Sub(now); wait > 0 {
			return wait
		}
		next := k.serve(userID)
		latest := k.svc.Now().Add(renewalLook)
		k.mu.Lock()
		if k.turns[userID] == t { // else the settings have changed meanwhile
			if t.at = next; next.After(latest) {
				t.at = latest
			}
		}
		k.mu.Unlock()
	}
	return renewalLook
}

// first is the user whose turn is next; nil where there is none.
func (k *renewals) first(now time.Time) (userID string, first *turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, t := range k.turns {
		if first == nil || t.due(now).Before(first.due(now)) {
			userID, first = id, t
		}
	}
	return userID, first
}

// serve makes a user's check if it is due and there is room for it, and returns
// when to look at the user again.
func (k *renewals) serve(userID string) time.Time {
	s := k.svc
	p, at, err := s.planned(k.ctx, userID)
	now := s.Now()
	switch {
	case err != nil:
		if k.ctx.Err() == nil {
			s.Log.Warn("when a user's login is to be checked could not be looked up", "error", err)
		}
		return now.Add(renewalHeld)
	case at.After(now):
		return at
	case s.Room != nil && !s.Room() || !s.capacity.AcquireUnlessLast():
		return now.Add(renewalPause)
	}
	r := s.enterRenewal(k.ctx, p)
	if r == nil {
		s.capacity.Release()
		return now.Add(min(renewalHeld, p.early()))
	}
	defer s.capacity.Replenish()
	defer s.leaveRenewal(r)
	defer s.capacity.Release() // first: who waits for the check may want its place
	s.renew(r)
	return s.Now().Add(renewalPause)
}
