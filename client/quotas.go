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

// UserQuotas returns how much of each quota a user uses, by name.
func (c *Client) UserQuotas(ctx context.Context, user string) (map[string]Used, error) {
	return c.useOf(ctx, http.MethodGet, userPath(user), nil)
}

// SetUserQuotas changes quotas of a user; the others stay. It returns how much of each the
// user uses. It needs the right admin.
func (c *Client) SetUserQuotas(ctx context.Context, user string, q Quotas) (map[string]Used, error) {
	return c.useOf(ctx, http.MethodPatch, userPath(user), map[string]Quotas{"quotas": q})
}

// SetKeyQuotas changes quotas of a key; the others stay. It returns how much of each the key
// uses. It needs the right admin.
func (c *Client) SetKeyQuotas(ctx context.Context, id string, q Quotas) (map[string]Used, error) {
	return c.useOf(ctx, http.MethodPatch, "/v1/keys/"+url.PathEscape(id), map[string]Quotas{"quotas": q})
}

func (c *Client) useOf(ctx context.Context, method, path string, body any) (map[string]Used, error) {
	var answer struct {
		Use map[string]Used `json:"use"`
	}
	err := c.Call(ctx, method, path, body, &answer)
	return answer.Use, err
}
