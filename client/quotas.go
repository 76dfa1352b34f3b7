package client

import (
	"context"
	"net/http"
	"net/url"
)

// Quotas say what a user or a key may have at once, by name: sessions, parked, standbys,
// snapshots, bytes, imports, sockets, requests_per_second. nil removes a quota; for a user
// the daemon's then applies.
type Quotas map[string]*int64

// Used is how much is used, and the quota in force; nil: there is none.
type Used struct {
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit"`
}

// UserQuotas returns a user's own quotas, and how much the user uses of those in force. A
// quota that is not the user's own is the daemon's.
func (c *Client) UserQuotas(ctx context.Context, user string) (own Quotas, use map[string]Used, err error) {
	var answer struct {
		Quotas Quotas          `json:"quotas"`
		Use    map[string]Used `json:"use"`
	}
	err = c.Call(ctx, http.MethodGet, userPath(user), nil, &answer)
	return answer.Quotas, answer.Use, err
}

// SetUserQuotas changes quotas of a user; the others stay. It returns how much of each the
// user uses. It needs the right admin.
func (c *Client) SetUserQuotas(ctx context.Context, user string, q Quotas) (map[string]Used, error) {
	return c.setQuotas(ctx, userPath(user), q)
}

// SetKeyQuotas changes quotas of a key; the others stay. It returns how much of each the key
// uses. It needs the right admin.
func (c *Client) SetKeyQuotas(ctx context.Context, id string, q Quotas) (map[string]Used, error) {
	return c.setQuotas(ctx, "/v1/keys/"+url.PathEscape(id), q)
}

func (c *Client) setQuotas(ctx context.Context, path string, q Quotas) (map[string]Used, error) {
	var answer struct {
		Use map[string]Used `json:"use"`
	}
	err := c.Call(ctx, http.MethodPatch, path, map[string]Quotas{"quotas": q}, &answer)
	return answer.Use, err
}
