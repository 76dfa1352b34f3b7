package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"unicode"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/settings"
)

// Settings reads and changes the settings of users.
type Settings interface {
	Settings(ctx context.Context, c access.Caller, userID string) (settings.Settings, error)
	// ChangeSettings applies change in a transaction. An error of change is returned
	// unchanged.
	ChangeSettings(ctx context.Context, c access.Caller, userID string, change func(settings.Settings) (settings.Settings, error)) (settings.Settings, error)
	// Use returns how much of the quotas a user with these settings uses.
	Use(ctx context.Context, userID string, set settings.Settings) (map[quota.Name]quota.Used, error)
	KeyUse
}

// KeyUse tells how much of its quotas a key uses.
type KeyUse interface {
	KeyUse(ctx context.Context, k access.Key) (map[quota.Name]quota.Used, error)
}

var _ Settings = (*settings.Users)(nil)

// settingsHandler answers GET and PATCH /v1/users/{user_id}.
type settingsHandler struct {
	settings Settings
	bodies   *bodyDecoder
}

const (
	maxCondition        = 4096 // bytes
	defaultCheckTimeout = 15   // seconds
	largestCheckTimeout = 60
	largestStandby      = 10 // Chromes of one user
	largestKeepLast     = 1_000_000
	largestKeepWithin   = 100 * 365 * 24 * 60 * 60 // seconds
)

// userAnswer is a user's settings on the wire.
type userAnswer struct {
	UserID string `json:"user_id"`
	settings.Settings
	Use map[quota.Name]quota.Used `json:"use"`
}

// settingsBody is the document that a PATCH changes.
type settingsBody struct {
	Engine     *string              `json:"engine"`
	Standby    *int64               `json:"standby"`
	LoginCheck *settings.LoginCheck `json:"login_check"`
	Retention  *library.Retention   `json:"retention"`
	Egress     *userEgressBody      `json:"egress"`
	Quotas     *quota.Quotas        `json:"quotas"`
	Limits     *settings.Limits     `json:"limits"`
}

// settings checks the body and returns its settings.
func (b settingsBody) settings() (settings.Settings, error) {
	set := settings.Settings{Engine: b.Engine, Standby: b.Standby, Retention: b.Retention, Quotas: b.Quotas, Limits: b.Limits}
	if b.Engine != nil {
		if err := isEngine("engine", *b.Engine); err != nil {
			return set, err
		}
	}
	if b.Standby != nil {
		if err := within("standby", *b.Standby, 0, largestStandby); err != nil {
			return set, err
		}
	}
	if b.Retention != nil {
		if err := checkRetention(*b.Retention); err != nil {
			return set, err
		}
	}
	if b.Quotas != nil {
		if err := checkQuotas(*b.Quotas); err != nil {
			return set, err
		}
	}
	err := areLimits(b.Limits)
	if err != nil {
		return set, err
	}
	if set.Egress, err = b.Egress.setting(); err != nil {
		return set, err
	}
	if b.LoginCheck == nil {
		return set, nil
	}
	if b.LoginCheck.TimeoutSeconds == nil {
		seconds := int64(defaultCheckTimeout)
		b.LoginCheck.TimeoutSeconds = &seconds
	}
	set.LoginCheck = b.LoginCheck
	return set, checkLoginCheck(*b.LoginCheck)
}

// checkQuotas checks the values of quotas.
func checkQuotas(q quota.Quotas) error {
	for _, name := range quota.Names() {
		if n := q.Of(name); n != nil {
			if err := within("quotas."+string(name), *n, quota.Least(name), quota.Largest(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRetention checks a policy against what is allowed. A policy that keeps nothing would
// delete every saved login, so it counts as a mistake.
func checkRetention(r library.Retention) error {
	const in = "retention."
	if r.KeepLast != nil {
		if err := within(in+"keep_last", *r.KeepLast, 1, largestKeepLast); err != nil {
			return err
		}
	}
	if r.KeepWithinSeconds != nil {
		if err := withinSeconds(in+"keep_within_seconds", *r.KeepWithinSeconds, 1, largestKeepWithin); err != nil {
			return err
		}
	}
	if !r.Keeps() {
		return invalid("retention", "keeps nothing; set keep_last, keep_within_seconds or keep_labelled: true, or null for the daemon's policy")
	}
	return nil
}

// checkLoginCheck checks a login check against what is allowed.
func checkLoginCheck(c settings.LoginCheck) error {
	const in = "login_check."
	if c.URL == "" {
		return invalid(in+"url", "is required")
	}
	if c.Status == nil && c.Selector == nil && c.Text == nil && c.Cookie == nil {
		return invalid("login_check", "needs at least one of status, selector, text, cookie")
	}
	if c.Status != nil {
		if err := within(in+"status", *c.Status, 100, 599); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"selector", c.Selector}, {"absent_selector", c.AbsentSelector}, {"text", c.Text}, {"cookie", c.Cookie}} {
		if f.value != nil {
			if err := atMost(in+f.name, *f.value, maxCondition); err != nil {
				return err
			}
		}
	}
	if c.CheckEverySeconds != nil {
		if err := withinSeconds(in+"check_every_seconds", *c.CheckEverySeconds, settings.MinCheckEvery, settings.MaxCheckEvery); err != nil {
			return err
		}
	}
	if c.Cookie != nil && strings.ContainsFunc(*c.Cookie, func(r rune) bool { return r == ';' || r == '=' || unicode.IsControl(r) }) {
		return invalid(in+"cookie", "must be a cookie's name")
	}
	return firstOf(
		isSelector(in+"selector", c.Selector), isSelector(in+"absent_selector", c.AbsentSelector),
		isSiteURL(in+"url", c.URL), withinSeconds(in+"timeout_seconds", *c.TimeoutSeconds, 1, largestCheckTimeout))
}

func (h *settingsHandler) get(c *call) error {
	user, err := c.userID()
	if err != nil {
		return err
	}
	set, err := h.settings.Settings(c.Request().Context(), c.caller, user)
	if err != nil {
		return err
	}
	return h.answer(c, user, set)
}

// answer answers with a user's settings.
func (h *settingsHandler) answer(c *call, user string, set settings.Settings) error {
	use, err := h.settings.Use(c.Request().Context(), user, set)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, userAnswer{user, set, use})
}

func (h *settingsHandler) patch(c *call) error {
	changes, err := h.bodies.patch(c, &settingsBody{})
	if err != nil {
		return err
	}
	user, err := c.userID()
	if err != nil {
		return err
	}
	for _, m := range changes {
		c.audit.Detail = strings.TrimSpace(c.audit.Detail + " " + m.name)
	}
	set, err := h.settings.ChangeSettings(c.Request().Context(), c.caller, user, func(was settings.Settings) (settings.Settings, error) {
		var now settingsBody
		if err := applyPatch(c.Request().Context(), was, changes, &now); err != nil {
			return was, err
		}
		set, err := now.settings()
		if err == nil && (!reflect.DeepEqual(set.Egress, was.Egress) || !reflect.DeepEqual(set.Quotas, was.Quotas) || !reflect.DeepEqual(set.Limits, was.Limits)) {
			err = c.caller.Require(access.Administer)
		}
		return set, err
	})
	if err != nil {
		return err
	}
	return h.answer(c, user, set)
}
