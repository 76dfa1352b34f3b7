package api

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/stasisd/stasis/session"
)

const (
	maxCondition        = 4096 // bytes
	defaultCheckTimeout = 15   // seconds
	largestCheckTimeout = 60
)

// userAnswer is a user's settings on the wire.
type userAnswer struct {
	UserID string `json:"user_id"`
	session.Settings
}

// settingsBody is the document that a PATCH changes.
type settingsBody struct {
	LoginCheck *checkBody `json:"login_check"`

	Engine    unbuilt `json:"engine"`
	Standby   unbuilt `json:"standby"`
	Retention unbuilt `json:"retention"`
	Quotas    unbuilt `json:"quotas"`
}

// checkBody is a login check; what is nil is not given.
type checkBody struct {
	URL            string  `json:"url"`
	Status         *int64  `json:"status"`
	Selector       *string `json:"selector"`
	AbsentSelector *string `json:"absent_selector"`
	Text           *string `json:"text"`
	Cookie         *string `json:"cookie"`
	Timeout        *int64  `json:"timeout_seconds"`
	BeforeDefault  bool    `json:"before_default"`
}

func (b settingsBody) settings() (session.Settings, error) {
	var set session.Settings
	if b.LoginCheck == nil {
		return set, nil
	}
	check, err := b.LoginCheck.check()
	set.LoginCheck = &check
	return set, err
}

// check holds a login check against what is allowed, and fills in its time.
func (b checkBody) check() (session.LoginCheck, error) {
	const in = "login_check."
	c := session.LoginCheck{URL: b.URL, Status: b.Status, Selector: b.Selector, AbsentSelector: b.AbsentSelector,
		Text: b.Text, Cookie: b.Cookie, TimeoutSeconds: defaultCheckTimeout, BeforeDefault: b.BeforeDefault}
	if b.Timeout != nil {
		c.TimeoutSeconds = *b.Timeout
	}
	if b.URL == "" {
		return c, invalid(in+"url", "is required")
	}
	if b.Status == nil && b.Selector == nil && b.Text == nil && b.Cookie == nil {
		return c, invalid("login_check", "needs at least one of status, selector, text, cookie")
	}
	if b.Status != nil {
		if err := within(in+"status", *b.Status, 100, 599); err != nil {
			return c, err
		}
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"selector", b.Selector}, {"absent_selector", b.AbsentSelector}, {"text", b.Text}, {"cookie", b.Cookie}} {
		if f.value != nil {
			if err := atMost(in+f.name, *f.value, maxCondition); err != nil {
				return c, err
			}
		}
	}
	if b.Cookie != nil && strings.ContainsFunc(*b.Cookie, func(r rune) bool { return r == ';' || r == '=' || unicode.IsControl(r) }) {
		return c, invalid(in+"cookie", "must be a cookie's name")
	}
	return c, firstOf(isSiteURL(in+"url", b.URL), within(in+"timeout_seconds", c.TimeoutSeconds, 1, largestCheckTimeout))
}

func (s *Server) getUser(c *call) error {
	user, err := c.userID()
	if err != nil {
		return err
	}
	set, err := s.service.Settings(c.Request().Context(), c.caller, user)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, userAnswer{user, set})
}

func (s *Server) patchUser(c *call) error {
	changes, err := s.patch(c, &settingsBody{})
	if err != nil {
		return err
	}
	user, err := c.userID()
	if err != nil {
		return err
	}
	set, err := s.service.ChangeSettings(c.Request().Context(), c.caller, user, func(was session.Settings) (session.Settings, error) {
		var now settingsBody
		if err := patched(was, changes, &now); err != nil {
			return was, err
		}
		return now.settings()
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, userAnswer{user, set})
}
