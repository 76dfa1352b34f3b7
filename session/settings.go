package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
)

// Settings are what a user asks for that outlives any default. It is the
// record and the wire shape.
type Settings struct {
	Engine     *string            `json:"engine"`  // of sessions that name none; nil: the daemon's
	Standby    *int64             `json:"standby"` // Chromes kept with the default brought in; nil: as it is used
	LoginCheck *LoginCheck        `json:"login_check"`
	Retention  *library.Retention `json:"retention"` // nil: the daemon's
}

// LoginCheck is an address and what proves there that the user is logged in;
// see browser.LoginCheck. Conditions that are nil are not given. It is the
// record and the wire shape.
type LoginCheck struct {
	URL            string  `json:"url"`
	Status         *int64  `json:"status"`
	Selector       *string `json:"selector"`
	AbsentSelector *string `json:"absent_selector"`
	Text           *string `json:"text"`
	Cookie         *string `json:"cookie"`
	TimeoutSeconds *int64  `json:"timeout_seconds"` // always set once it is checked
	// BeforeDefault: a save may move the default only after the check.
	BeforeDefault bool `json:"before_default"`
	// CheckEverySeconds has it made by itself, from LeastCheckEvery to
	// MostCheckEvery; nil: only when somebody asks.
	CheckEverySeconds *int64 `json:"check_every_seconds"`
}

// browser is what the browser room is told of a check.
func (c LoginCheck) browser() browser.LoginCheck {
	return browser.LoginCheck{URL: c.URL, Status: given(c.Status), Selector: given(c.Selector),
		AbsentSelector: given(c.AbsentSelector), Text: given(c.Text), Cookie: given(c.Cookie),
		Timeout: time.Duration(given(c.TimeoutSeconds)) * time.Second}
}

// given is a condition's value, zero where it is not given.
func given[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

// Settings tells a user's settings. One without any has none set.
func (s *Service) Settings(ctx context.Context, c access.Caller, userID string) (Settings, error) {
	if err := c.ForUser(userID, access.Look); err != nil {
		return Settings{}, err
	}
	return s.settings(ctx, userID)
}

func (s *Service) settings(ctx context.Context, userID string) (Settings, error) {
	user, err := s.Catalogue.User(ctx, userID)
	if err != nil {
		return Settings{}, err
	}
	return settingsOf(user)
}

// ChangeSettings changes a user's settings in one transaction. An error of
// change leaves them as they were and comes back as it is.
func (s *Service) ChangeSettings(ctx context.Context, c access.Caller, userID string, change func(Settings) (Settings, error)) (Settings, error) {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return Settings{}, err
	}
	var now Settings
	_, err := s.Catalogue.UpdateUser(ctx, userID, s.Now().UTC(), func(u *profiles.User) error {
		was, err := settingsOf(*u)
		if err != nil {
			return err
		}
		if now, err = change(was); err != nil {
			return err
		}
		u.Settings = encode(now)
		return nil
	})
	if err == nil {
		s.capacity.SetStandbys(userID, given(now.Standby) > 0)
		s.renewals.told(userID, now)
	}
	return now, err
}

func settingsOf(u profiles.User) (Settings, error) {
	var set Settings
	if len(u.Settings) == 0 {
		return set, nil
	}
	err := json.Unmarshal(u.Settings, &set)
	return set, fault.Wrap(err, fault.StoreFailed, "session.settings", "the user's recorded settings cannot be read")
}
