package capacity

import (
	"maps"
	"sync"
	"time"
)

// A default is restored often when it was restored oftenTimes within oftenWithin. For
// inUseFor after a restore, a user's standby does not give way to another user's.
const (
	oftenTimes  = 3
	oftenWithin = time.Hour
	inUseFor    = 10 * time.Minute
)

// demand records users' restores and standby settings. Its methods are safe for
// concurrent use.
type demand struct {
	enabled bool // standbys are enabled; if not, nothing is recorded
	now     func() time.Time

	mu    sync.Mutex
	users map[string]*userDemand
}

// userDemand holds one user's restores and standby setting.
type userDemand struct {
	requested bool        // the user's settings request standbys
	times     []time.Time // of the last restores in one engine, the latest last; at most oftenTimes
	engine    string      // of those restores
}

func newDemand(enabled bool, now func() time.Time) *demand {
	return &demand{enabled: enabled, now: now, users: map[string]*userDemand{}}
}

// often reports whether the user's default is restored often.
func (d *userDemand) often(now time.Time) bool {
	return len(d.times) == oftenTimes && now.Sub(d.times[0]) <= oftenWithin
}

// last returns when the user's default was last restored.
func (d *userDemand) last() (last time.Time) {
	if n := len(d.times); n > 0 {
		last = d.times[n-1]
	}
	return last
}

// count records a restore of a user's default.
func (d *demand) count(userID, engine string) {
	if !d.enabled {
		return
	}
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.of(userID)
	if u.engine != engine {
		u.engine, u.times = engine, nil
	}
	if u.times = append(u.times, now); len(u.times) > oftenTimes {
		u.times = u.times[1:]
	}
}

// setRequested records whether a user's settings request standbys.
func (d *demand) setRequested(userID string, requested bool) {
	if !d.enabled {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(userID).requested = requested
}

// of returns a user's demand. The caller holds the lock.
func (d *demand) of(userID string) *userDemand {
	if d.users[userID] == nil {
		d.users[userID] = &userDemand{}
	}
	return d.users[userID]
}

// current returns the users who may get a standby. It forgets users without recent
// restores and without a setting.
func (d *demand) current(now time.Time) map[string]userDemand {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.users, func(_ string, u *userDemand) bool { return !u.requested && now.Sub(u.last()) > oftenWithin })
	known := map[string]userDemand{}
	for userID, u := range d.users {
		if u.requested || u.often(now) {
			known[userID] = *u
		}
	}
	return known
}
