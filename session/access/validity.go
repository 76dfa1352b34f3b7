package access

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// errKeyExpired is returned to a caller whose key has expired, also during the call.
var errKeyExpired = fault.New(fault.Unauthorized, "access.key", "the API key has expired")

// KeyEnded returns the reason of a WebSocket's close frame for an error that
// [Keys.RegisterConnection] reports.
func KeyEnded(why error) string {
	if errors.Is(why, errKeyExpired) {
		return "key_expired"
	}
	return "key_deleted"
}

// useStep is how exact the time of a key's last use is. Not every call writes to the
// catalogue.
const useStep = time.Minute

// useDeadline is how long a call waits for the record of its key's use.
const useDeadline = 2 * time.Second

// uses has the times of last uses that were recorded, by key ID.
type uses struct {
	mu       sync.Mutex
	recorded map[string]time.Time
}

// noteUse records that a key was used, at most once in useStep. If it cannot be recorded,
// as on a full disk, the key works all the same.
func (k *Keys) noteUse(ctx context.Context, rec profiles.Key) {
	now := k.now()
	k.uses.mu.Lock()
	due := now.Sub(rec.UsedAt) >= useStep && now.Sub(k.uses.recorded[rec.ID]) >= useStep
	if due {
		if k.uses.recorded == nil {
			k.uses.recorded = map[string]time.Time{}
		}
		k.uses.recorded[rec.ID] = now
	}
	k.uses.mu.Unlock()
	if due {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), useDeadline)
		defer cancel()
		_ = k.store.UseKey(ctx, rec.ID, now.UTC()) // see above
	}
}

// forgetUse forgets a deleted key.
func (k *Keys) forgetUse(id string) {
	k.uses.mu.Lock()
	defer k.uses.mu.Unlock()
	delete(k.uses.recorded, id)
}

func (k *Keys) expired(rec profiles.Key) bool {
	return !rec.ExpiresAt.IsZero() && !k.now().Before(rec.ExpiresAt)
}

// endAtExpiry calls end when the key expires, until stop.
func (k *Keys) endAtExpiry(rec profiles.Key, end func()) (stop func()) {
	if rec.ExpiresAt.IsZero() {
		return func() {}
	}
	timer := time.AfterFunc(rec.ExpiresAt.Sub(k.now()), end)
	return func() { timer.Stop() }
}

// mayUseFrom reports whether an address is in one of the networks; without networks it
// need not be known.
func mayUseFrom(networks []string, from netip.Addr) bool {
	for _, text := range networks {
		if n, err := netip.ParsePrefix(text); err == nil && n.Contains(from.Unmap().WithZone("")) {
			return true
		}
	}
	return len(networks) == 0
}
