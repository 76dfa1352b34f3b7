package settings

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/quota"
)

// Records stores users' settings; see [profiles.UserStore].
type Records interface {
	User(ctx context.Context, id string) (profiles.User, error)
	UpdateUser(ctx context.Context, id string, at time.Time, update func(*profiles.User) error) (profiles.User, error)
}

// Users looks settings up and changes them. Its methods are safe for concurrent use.
type Users struct {
	records Records
	cfg     Config
	cached  quotaCache
}

// Config are the settings and callbacks of Users.
type Config struct {
	Quotas  quota.Quotas // of users whose settings have none
	Use     quota.Use
	Limits  browser.Limits // of each session of every user
	Now     func() time.Time
	Changed func(userID string, now Settings) // called after each change
}

// NewUsers makes Users over records.
func NewUsers(records Records, cfg Config) *Users { return &Users{records: records, cfg: cfg} }

// Egress returns what a user's browsers may connect to.
func (u *Users) Egress(ctx context.Context, userID string) (browser.Egress, error) {
	set, err := u.For(ctx, userID)
	if err != nil && !fault.Is(err, fault.UserNotFound) {
		return browser.Egress{}, err
	}
	return set.Egress.Limits(), nil
}

// Settings returns a user's settings to a caller. A user without settings has the zero
// value; an unknown user is user_not_found.
func (u *Users) Settings(ctx context.Context, c access.Caller, userID string) (Settings, error) {
	if err := c.ForUser(userID, access.Look); err != nil {
		return Settings{}, err
	}
	return u.For(ctx, userID)
}

// For returns a user's settings, for the daemon's own work.
func (u *Users) For(ctx context.Context, userID string) (Settings, error) {
	user, err := u.records.User(ctx, userID)
	if err != nil {
		return Settings{}, err
	}
	return Of(user)
}

// ChangeSettings changes a user's settings in one transaction, and returns the new ones.
// If change returns an error, ChangeSettings returns that error and nothing changes.
func (u *Users) ChangeSettings(ctx context.Context, c access.Caller, userID string, change func(Settings) (Settings, error)) (Settings, error) {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return Settings{}, err
	}
	var now Settings
	_, err := u.records.UpdateUser(ctx, userID, u.cfg.Now().UTC(), func(rec *profiles.User) error {
		was, err := Of(*rec)
		if err != nil {
			return err
		}
		if now, err = change(was); err != nil {
			return err
		}
		if err := u.checkStandby(userID, was, now); err != nil {
			return err
		}
		if err := CheckLimits(now.Limits.Browser(), browser.Limits{}, u.cfg.Limits); err != nil && !reflect.DeepEqual(now.Limits, was.Limits) {
			return err
		}
		rec.Settings, err = json.Marshal(now)
		return err
	})
	u.cached.changed(userID) // also after an error, which does not say that nothing changed
	if err == nil {
		u.cfg.Changed(userID, now)
	}
	return now, err
}
