package renewal

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/stasisd/stasis/session/settings"
)

// When scheduled login checks are made.
const (
	renewalPause    = 5 * time.Second  // before the next look at a user: after a check, or if no slot was free
	heldPause       = time.Minute      // before the next look if the environment is in use
	turnPause       = time.Minute      // between two looks of a node: users' settings are changed at others, and it may have to make the checks now
	maxLookInterval = 10 * time.Minute // between two looks at most: clocks are set, also back, and machines sleep
	saveRetryPause  = 2 * time.Second  // between two tries to save the result of a check
	renewalPatience = 10 * time.Second // how long a create waits for a check whose Chrome is running
)

// Renewals makes the scheduled login checks of all users, one after the other, in one
// goroutine. The catalogue decides the order, so a new daemon continues where the
// previous one stopped. Its methods are safe for concurrent use.
type Renewals struct {
	cfg     Config
	workCtx context.Context // of the daemon's work: a save continues when no further check starts
	ctx     context.Context // of the checks
	cancel  context.CancelFunc
	wake    chan struct{}
	wg      sync.WaitGroup

	mu    sync.Mutex
	turns map[string]*Turn // by user
}

// Turn is when a user's check is looked up next, at most maxLookInterval after the last time.
// No check of the user is due earlier.
type Turn struct{ at time.Time }

// due returns when the turn is. A turn that is further ahead than maxLookInterval is due now:
// the clock was set back.
func (t *Turn) due(now time.Time) time.Time {
	if t.at.Sub(now) > maxLookInterval {
		return now
	}
	return t.at
}

// New makes Renewals. Saves end with ctx at the latest.
func New(ctx context.Context, cfg Config) *Renewals {
	cfg.Patience, cfg.Between = cmp.Or(cfg.Patience, renewalPatience), cmp.Or(cfg.Between, saveRetryPause)
	k := &Renewals{cfg: cfg, workCtx: ctx, wake: make(chan struct{}, 1), turns: map[string]*Turn{}}
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
			k.cfg.Log.Warn("a user's settings cannot be read; no login checks are made for this user", "error", err)
			continue
		}
		k.SettingsChanged(u.ID, set)
	}
	if k.cfg.MaxSessions < 2 && len(k.turns) > 0 {
		k.cfg.Log.Warn("--max-sessions 1: scheduled login checks are never made, because the last slot is kept for sessions; allow at least 2", "users", len(k.turns))
	}
	k.wg.Go(k.run)
	return nil
}

// SettingsChanged applies a user's settings after a change.
func (k *Renewals) SettingsChanged(userID string, set settings.Settings) {
	k.mu.Lock()
	if set.CheckEvery() > 0 {
		k.turns[userID] = &Turn{}
	} else {
		delete(k.turns, userID)
	}
	k.mu.Unlock()
	k.Wake()
}

// Wake wakes the schedule to look for checks that are due. It does not wait.
func (k *Renewals) Wake() {
	select {
	case k.wake <- struct{}{}:
	default: // it is woken already
	}
}

// Stop starts no further check and abandons the current one, unless it is saving.
func (k *Renewals) Stop() { k.cancel() }

// Wait returns when the current check has ended. Call Stop first.
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
		later.Reset(k.look())
	}
}

// look makes the checks that are due if it is this daemon's turn, and returns the time until the
// next look.
func (k *Renewals) look() time.Duration {
	if k.cfg.Turn == nil {
		return k.makeDueChecks()
	}
	if !k.cfg.Turn() {
		return turnPause
	}
	users, err := k.cfg.Records.UsersWithSettings(k.ctx)
	if err != nil {
		if k.ctx.Err() == nil {
			k.cfg.Log.Warn("the settings of users cannot be read, so no login checks are made; trying again", "error", err)
		}
		return turnPause
	}
	k.mu.Lock()
	for _, u := range users {
		if set, err := settings.Of(u); err == nil && set.CheckEvery() > 0 && k.turns[u.ID] == nil {
			k.turns[u.ID] = &Turn{}
		}
	}
	k.mu.Unlock()
	return min(k.makeDueChecks(), turnPause)
}

// makeDueChecks makes the checks that are due, and returns the time until the next look.
func (k *Renewals) makeDueChecks() time.Duration {
	for k.ctx.Err() == nil {
		now := k.cfg.Now()
		userID, due, t := k.Next(now)
		if t == nil {
			break
		}
		if wait := due.Sub(now); wait > 0 {
			return wait
		}
		next := k.checkUser(userID)
		latest := k.cfg.Now().Add(maxLookInterval)
		k.mu.Lock()
		if k.turns[userID] == t { // otherwise the settings have changed meanwhile
			if t.at = next; next.After(latest) {
				t.at = latest
			}
		}
		k.mu.Unlock()
	}
	return maxLookInterval
}

// Next returns the user whose turn is next, and when that is; next is nil if there is
// none.
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

// checkUser makes a user's check if it is due and a slot is free, and returns when to look at
// the user again.
func (k *Renewals) checkUser(userID string) time.Time {
	p, at, err := k.planned(k.ctx, userID)
	now := k.cfg.Now()
	switch {
	case err != nil:
		if k.ctx.Err() == nil {
			k.cfg.Log.Warn("cannot read when a user's next login check is due; trying again", "error", err)
		}
		return now.Add(heldPause)
	case at.After(now):
		return at
	case !k.cfg.MemoryAllows() || !k.cfg.Slots.AcquireUnlessLast():
		return now.Add(renewalPause)
	}
	r := newRenewal(k.ctx, p, k.cfg.Patience)
	if !k.cfg.Sessions.EnterRenewal(r) {
		r.cancel()
		k.cfg.Slots.Release()
		return now.Add(min(heldPause, p.minInterval()))
	}
	defer k.cfg.Slots.Replenish()
	defer func() {
		k.cfg.Sessions.LeaveRenewal(r)
		r.end()
	}()
	defer k.cfg.Slots.Release() // deferred last, so it runs first: a create that waits for the check may need the slot
	k.renew(r)
	return k.cfg.Now().Add(renewalPause)
}
