package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Default is a version of a user's default environment.
type Default struct {
	UserID     string        `json:"user_id"`
	Version    int64         `json:"version"`
	SnapshotID string        `json:"snapshot_id"` // "": this version removed the default
	SessionID  string        `json:"session_id"`  // whose save moved it; "" after a rollback
	MovedAt    time.Time     `json:"moved_at"`
	Available  bool          `json:"available"` // only in a history: its snapshot still exists
	LastCheck  *LoginOutcome `json:"last_check"`
}

// LoginOutcome is the result of a login check.
type LoginOutcome struct {
	LoggedIn   bool      `json:"logged_in"`
	CheckedAt  time.Time `json:"checked_at"`
	URL        string    `json:"url"`
	Status     int       `json:"status"`
	Error      string    `json:"error"` // why there is no result
	Version    int64     `json:"version"`
	DurationMS int64     `json:"duration_ms"`
	Conditions []struct {
		Kind string `json:"kind"`
		Held bool   `json:"held"`
	} `json:"conditions"`
	LoggedOutSince *time.Time `json:"logged_out_since"` // when this version was first found logged out
}

// LoginCheck says what proves that a user is logged in. All conditions that are set must hold.
type LoginCheck struct {
	URL            string `json:"url"`
	Status         int    `json:"status,omitempty"`
	Selector       string `json:"selector,omitempty"`
	AbsentSelector string `json:"absent_selector,omitempty"`
	Text           string `json:"text,omitempty"`
	Cookie         string `json:"cookie,omitempty"`
	TimeoutSeconds int64  `json:"timeout_seconds,omitempty"`
	BeforeDefault  bool   `json:"before_default,omitempty"`      // a failed check keeps the default
	EverySeconds   int64  `json:"check_every_seconds,omitempty"` // keeps the login alive
}

// Default returns a user's default environment. The error's code is default_not_found if the
// user has none.
func (c *Client) Default(ctx context.Context, user string) (*Default, error) {
	return get[Default](ctx, c, http.MethodGet, userPath(user)+"/default", nil)
}

// SetDefault makes a snapshot the user's default, for example an earlier version of it.
func (c *Client) SetDefault(ctx context.Context, user, snapshot string) (*Default, error) {
	return get[Default](ctx, c, http.MethodPut, userPath(user)+"/default", map[string]string{"snapshot_id": snapshot})
}

// RemoveDefault removes the user's default. Its snapshots stay.
func (c *Client) RemoveDefault(ctx context.Context, user string) error {
	return c.Call(ctx, http.MethodDelete, userPath(user)+"/default", nil, nil)
}

// History returns the versions of a user's default, the newest first. It ends with the first
// error.
func (c *Client) History(ctx context.Context, user string) iter.Seq2[Default, error] {
	return pages(url.Values{}, func(query string) ([]Default, string, error) {
		var page struct {
			History   []Default `json:"history"`
			NextToken string    `json:"next_token"`
		}
		err := c.Call(ctx, http.MethodGet, userPath(user)+"/default/history?"+query, nil, &page)
		return page.History, page.NextToken, err
	})
}

// CheckLogin checks whether the user's default is logged in, with the check in the user's
// settings.
func (c *Client) CheckLogin(ctx context.Context, user string) (*LoginOutcome, error) {
	return get[LoginOutcome](ctx, c, http.MethodPost, userPath(user)+"/default/check", nil)
}

// SetLoginCheck sets the check in the user's settings; nil removes it.
func (c *Client) SetLoginCheck(ctx context.Context, user string, check *LoginCheck) error {
	return c.Call(ctx, http.MethodPatch, userPath(user), map[string]any{"login_check": check}, nil)
}

func userPath(user string) string { return "/v1/users/" + url.PathEscape(user) }
