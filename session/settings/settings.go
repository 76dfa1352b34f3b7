// Package settings has the settings of users: the engine of their sessions, how many
// Chromes are kept ready, their login check, and which snapshots are kept. They are
// stored as JSON in the user's record, and remain when a default is removed. Package api
// checks their values.
package settings

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/quota"
)

// Settings are the settings of one user: the stored record and the wire format.
type Settings struct {
	Engine     *string            `json:"engine"`  // for sessions that name none; nil: the daemon's
	Standby    *int64             `json:"standby"` // Chromes kept ready with the default; nil: depends on use
	LoginCheck *LoginCheck        `json:"login_check"`
	Retention  *library.Retention `json:"retention"` // nil: the daemon's
	Egress     *Egress            `json:"egress"`    // what browsers may connect to; nil: all that the daemon allows
	Quotas     *quota.Quotas      `json:"quotas"`    // nil: the daemon's
	Limits     *Limits            `json:"limits"`    // of each session; nil: the daemon's
}

// Egress says what a user's browsers may connect to. It is the stored record and the wire
// format.
type Egress struct {
	Allow        []egress.Entry `json:"allow"` // if there are some, only these
	Deny         []egress.Entry `json:"deny"`
	AllowPrivate []netip.Prefix `json:"allow_private"` // although they are not public
}

// Limits converts the setting for package browser.
func (e *Egress) Limits() (limits browser.Egress) {
	if e == nil {
		return limits
	}
	if list := (egress.NewList(e.Allow, e.Deny)); !list.Empty() {
		limits.Lists = []egress.List{list}
	}
	limits.Private = e.AllowPrivate
	return limits
}

// Bounds of check_every_seconds, in seconds.
const (
	MinCheckEvery = 60
	MaxCheckEvery = 30 * 24 * 60 * 60
)

// LoginCheck is an address and the conditions there that prove a login; see
// browser.LoginCheck. A nil condition is not checked. It is the stored record and the
// wire format.
type LoginCheck struct {
	URL            string  `json:"url"`
	Status         *int64  `json:"status"`
	Selector       *string `json:"selector"`
	AbsentSelector *string `json:"absent_selector"`
	Text           *string `json:"text"`
	Cookie         *string `json:"cookie"`
	TimeoutSeconds *int64  `json:"timeout_seconds"` // always set after validation
	// BeforeDefault: a save may move the default only after the check.
	BeforeDefault bool `json:"before_default"`
	// CheckEverySeconds is how often the check is made on a schedule, from
	// MinCheckEvery to MaxCheckEvery; nil: only on request.
	CheckEverySeconds *int64 `json:"check_every_seconds"`
}

// Browser converts the check for package browser.
func (c LoginCheck) Browser() browser.LoginCheck {
	return browser.LoginCheck{URL: c.URL, Status: ValueOrZero(c.Status), Selector: ValueOrZero(c.Selector),
		AbsentSelector: ValueOrZero(c.AbsentSelector), Text: ValueOrZero(c.Text), Cookie: ValueOrZero(c.Cookie),
		Timeout: time.Duration(ValueOrZero(c.TimeoutSeconds)) * time.Second}
}

// ValueOrZero returns the value of a setting; the zero value if it is nil.
func ValueOrZero[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

// CheckEvery returns the interval of scheduled login checks; 0: none.
func (s Settings) CheckEvery() time.Duration {
	if s.LoginCheck == nil {
		return 0
	}
	return time.Duration(ValueOrZero(s.LoginCheck.CheckEverySeconds)) * time.Second
}

// Of reads the settings in a user's record. A record without settings gives the zero
// value. Settings that cannot be read are store_failed.
func Of(u profiles.User) (Settings, error) {
	var set Settings
	if len(u.Settings) == 0 {
		return set, nil
	}
	err := json.Unmarshal(u.Settings, &set)
	return set, fault.Wrap(err, fault.StoreFailed, "session.settings", "the user's stored settings cannot be read")
}
