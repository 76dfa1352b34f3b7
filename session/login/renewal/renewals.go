package renewal

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/stasisd/stasis/session/settings"
)

// How scheduled login checks are spread over time.
const (
	renewalPause    = 5 * time.Second  // before the next look at a user: after a check, or if there was no slot for one
	renewalHeld     = time.Minute      // where somebody holds the environment
	renewalLook     = 10 * time.Minute // at the latest: clocks are set, also back, and machines sleep
	renewalBetween  = 2 * time.Second  // between two tries to save what a check found
	renewalPatience = 10 * time.Second // of a create, with a check that has its browser
)

// Renewals makes the scheduled login checks of all users, one after the other, on one
// goroutine. The order follows from the catalogue, so a daemon that starts goes on where
// the last one stopped. Its methods are safe for concurrent use.
type Renewals struct {
	cfg    Config
	life   context.Context // of the daemon's work: a save goes on when no further check begins
	ctx    context.Context // of the checks
	cancel context.CancelFunc
	wake   chan struct{}
	wg     sync.WaitGroup

	mu    sync.Mutex
	turns map[string]*Turn // by user
}

// Turn is when a user's check is looked up next, at most renewalLook after the last
// time. Nothing is due before.
type Turn struct{ at time.Time }

// due is when the turn is. A turn that is further ahead than renewalLook is now: the
// clock was set back.
func (t *Turn) due(now time.Time) time.Time {
	if t.at.Sub(now) > renewalLook {
		return now
	}
	return t.at
}

// New makes Renewals. Their saves end with ctx at the latest.
func New(ctx context.Context, cfg Config) *Renewals {
	cfg.Patience, cfg.Between = cmp.Or(cfg.Patience, renewalPatience), cmp.Or(cfg.Between, renewalBetween)
	k := &Renewals{cfg: cfg, life: ctx, wake: make(chan struct{}, 1), turns: map[string]*Turn{}}
	k.ctx, k.cancel = context.WithCancel(ctx)
	return k
}

// Begin reads the settings of all users and starts the checks. Stop must be called.
func (k *Renewals) Begin(ctx context.Context) error {
	users, err := k.cfg.Records.UsersWithSettings(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		set, err := settings.Of(u)
		if err != nil {
			k.cfg.Log.Warn("a user's settings cannot be read", "error", err)
			continue
		}
		k.SettingsChanged(u.ID, set)
	}
	if k.cfg.MaxSessions < 2 && len(k.turns) > 0 {
		k.cfg.Log.Warn("scheduled login checks are never made with --max-sessions 1: the last place is a session's", "users", len(k.turns))
	}
	k.wg.Go(k.run)
	return nil
}

// SettingsChanged takes over a user's settings after a change.
func (k *Renewals) SettingsChanged(userID string, set settings.Settings) {
	k.mu.Lock()
	if set.CheckEvery() > 0 {
		k.turns[userID] = &Turn{}
	} else {
		delete(k.turns, userID)
	}
	k.mu.Unlock()
	k.Look()
}

// Look makes the schedule look whether something is due. It does not wait.
func (k *Renewals) Look() {
	select {
	case k.wake <- struct{}{}:
	default: // it will
	}
}

// Stop begins no further check and gives one up that is under way, but for its save.
func (k *Renewals) Stop() { k.cancel() }

// Wait returns when that has ended. Call Stop first.
func (k *Renewals) Wait() { k.wg.Wait() }

func (k *Renewals) run() {
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

// tend makes the checks that are due, and returns how long until the next look.
func (k *Renewals) tend() time.Duration {
	for k.ctx.Err() == nil {
		now := k.cfg.Now()
		userID, due, t := k.Next(now)
		if t == nil {
			break
		}
		if wait := due.Sub(now); wait > 0 {
			return wait
		}
		next := k.serve(userID)
		latest := k.cfg.Now().Add(renewalLook)
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

// Next is the user whose turn is next, and when that is; a nil turn where there is none.
func (k *Renewals) Next(now time.Time) (userID string, due time.Time, next *Turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, t := range k.turns {
		if at := t.due(now); next == nil || at.Before(due) {
			userID, due, next = id, at, t
		}
	}
	return userID, due, next
}

// serve makes a user's check if it is due and there is a slot for it, and returns when to
// look at the user again.
func (k *Renewals) serve(userID string) time.Time {
	p, at, err := k.planned(k.ctx, userID)
	now := k.cfg.Now()
	switch {
	case err != nil:
		if k.ctx.Err() == nil {
			k.cfg.Log.Warn("when a user's login is to be checked could not be looked up", "error", err)
		}
		return now.Add(renewalHeld)
	case at.After(now):
		return at
	case !k.cfg.Room() || !k.cfg.Places.AcquireUnlessLast():
		return now.Add(renewalPause)
	}
	r := newRenewal(k.ctx, p, k.cfg.Patience)
	if !k.cfg.Sessions.EnterRenewal(r) {
		r.cancel()
		k.cfg.Places.Release()
		return now.Add(min(renewalHeld, p.early()))
	}
	defer k.cfg.Places.Replenish()
	defer func() {
		k.cfg.Sessions.LeaveRenewal(r)
		r.end()
	}()
	defer k.cfg.Places.Release() // first: a create that waits for the check may want its slot
	k.renew(r)
	return k.cfg.Now().Add(renewalPause)
}
