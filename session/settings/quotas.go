package settings

import (
	"context"
	"fmt"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/quota"
)

// Quotas returns a user's quotas: those of the settings, else the daemon's.
func (u *Users) Quotas(ctx context.Context, userID string) (quota.Quotas, error) {
	now := u.cfg.Now()
	q, known, changes := u.cached.get(userID, now)
	if known {
		return q, nil
	}
	set, err := u.For(ctx, userID)
	if err != nil && !fault.Is(err, fault.UserNotFound) {
		return quota.Quotas{}, err
	}
	q = u.quotas(set)
	u.cached.put(userID, q, now, changes)
	return q, nil
}

func (u *Users) quotas(set Settings) quota.Quotas {
	if set.Quotas == nil {
		return u.cfg.Quotas
	}
	return set.Quotas.Or(u.cfg.Quotas)
}

// QuotaLimits returns the limits of a user and of a caller's key for one thing.
func (u *Users) QuotaLimits(ctx context.Context, c access.Caller, userID string, name quota.Name) ([]quota.Limit, error) {
	user, err := u.Quotas(ctx, userID)
	return quota.Limits(name, userID, user, c.KeyID, c.Quotas), err
}

// RequestLimits returns the limits of a caller's requests: those of its key and of the key's
// user. A key for every user makes no requests of a user: its only limit is its own, or the
// daemon's. If it may manage keys and users, then also the daemon's does not apply to such
// calls (managing), so that nothing locks it out that was not set for it.
func (u *Users) RequestLimits(ctx context.Context, c access.Caller, managing bool) ([]quota.Limit, error) {
	if !c.ForEveryUser() {
		return u.QuotaLimits(ctx, c, c.UserID, quota.Requests)
	}
	own := c.Quotas
	if !managing || !c.May(access.Administer) {
		own = own.Or(u.cfg.Quotas)
	}
	return []quota.Limit{{Share: quota.Share{Holder: quota.Holder{Kind: quota.Key, ID: c.KeyID}, Name: quota.Requests}, Most: own.Requests}}, nil
}

// Use returns how much of the quotas a user with these settings uses.
func (u *Users) Use(ctx context.Context, userID string, set Settings) (map[quota.Name]quota.Used, error) {
	return u.cfg.Use.Of(ctx, quota.Holder{Kind: quota.User, ID: userID}, u.quotas(set))
}

// KeyUse returns how much of its quotas a key uses.
func (u *Users) KeyUse(ctx context.Context, k access.Key) (map[quota.Name]quota.Used, error) {
	return u.cfg.Use.Of(ctx, quota.Holder{Kind: quota.Key, ID: k.ID}, k.Quotas)
}

// checkStandby returns quota_exceeded if a change asks for more standbys than the user's
// quota allows. A smaller quota makes no earlier setting wrong.
func (u *Users) checkStandby(userID string, was, now Settings) error {
	n := ValueOrZero(now.Standby)
	if n <= ValueOrZero(was.Standby) {
		return nil
	}
	most := u.quotas(now).Of(quota.Standbys)
	if most == nil || n <= *most {
		return nil
	}
	return fault.Wrap(quota.Exceeded{Name: quota.Standbys, Limit: *most, Of: quota.User, ID: userID}, fault.QuotaExceeded, "session.settings",
		fmt.Sprintf("standby: must be at most the user's quota quotas.standbys, which is %d", *most))
}
