package settings

import (
	"sync"

	"github.com/stasisd/stasis/session/quota"
)

// maxCached bounds the users whose quotas are in memory.
const maxCached = 10_000

// quotaCache has the quotas that are in force for users until their settings change, because each request
// needs them. A user without settings has the daemon's. The zero value is ready. The methods are safe
// for concurrent use.
type quotaCache struct {
	mu      sync.Mutex
	users   map[string]quota.Quotas
	changes int // of settings: what was read before one is not kept
}

// get returns a user's quotas, and the number of changes for put.
func (c *quotaCache) get(userID string) (q quota.Quotas, known bool, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, known = c.users[userID]
	return q, known, c.changes
}

// put keeps a user's quotas that were read after get, unless settings changed meanwhile.
func (c *quotaCache) put(userID string, q quota.Quotas, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes != c.changes {
		return
	}
	if c.users == nil || len(c.users) >= maxCached {
		c.users = map[string]quota.Quotas{}
	}
	c.users[userID] = q
}

// changed forgets a user's quotas.
func (c *quotaCache) changed(userID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.users, userID)
}
