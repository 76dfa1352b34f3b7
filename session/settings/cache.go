package settings

import (
	"sync"
	"time"

	"github.com/stasisd/stasis/session/quota"
)

const (
	// maxCached bounds the users whose quotas are in memory.
	maxCached = 10_000
	// cachedFor is how long quotas are kept: another node can change them.
	cachedFor = 5 * time.Second
)

// quotaCache has the quotas of users, because each request needs them: until their settings change on
// this daemon, and at most for cachedFor. A user without settings has the daemon's. The zero value is
// ready. The methods are safe for concurrent use.
type quotaCache struct {
	mu      sync.Mutex
	users   map[string]cachedQuotas
	changes int // of settings: what was read before one is not kept
}

// cachedQuotas are the quotas of a user.
type cachedQuotas struct {
	quota.Quotas
	since time.Time // when they were read
}

// get returns a user's quotas, and the number of changes for put.
func (c *quotaCache) get(userID string, now time.Time) (q quota.Quotas, known bool, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, known := c.users[userID]
	age := now.Sub(cached.since)
	return cached.Quotas, known && age >= 0 && age < cachedFor, c.changes
}

// put keeps a user's quotas that were read after get, at the time now, unless settings changed
// meanwhile.
func (c *quotaCache) put(userID string, q quota.Quotas, now time.Time, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes != c.changes {
		return
	}
	if c.users == nil || len(c.users) >= maxCached {
		c.users = map[string]cachedQuotas{}
	}
	c.users[userID] = cachedQuotas{q, now}
}

// changed forgets a user's quotas.
func (c *quotaCache) changed(userID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.users, userID)
}
