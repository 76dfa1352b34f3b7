package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Key is an API key.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	UserID    string    `json:"user_id"` // whose sessions it makes if a call names no user
	AllUsers  bool      `json:"all_users"`
	Rights    []string  `json:"rights"`
	CreatedAt time.Time `json:"created_at"`

	ExpiresAt         *time.Time `json:"expires_at"`          // nil: never
	Networks          []string   `json:"networks"`            // those that it may be used from; none: all
	LastUsedAt        *time.Time `json:"last_used_at"`        // to the minute; nil: never
	FormerSecretUntil *time.Time `json:"former_secret_until"` // of the secret from before the last rotation; nil: it is not valid

	Quotas Quotas          `json:"quotas"`
	Use    map[string]Used `json:"use,omitempty"` // how much it uses of each quota; only in the answer to Keys

	Secret string `json:"secret,omitempty"` // only in the answers to CreateKey and RotateKey
}

// Me returns the client's own key, without its name and the time at which it was made.
func (c *Client) Me(ctx context.Context) (*Key, error) {
	var me struct {
		Key
		ID string `json:"key_id"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/me", nil, &me)
	me.Key.ID = me.ID
	return &me.Key, err
}

// KeyOptions say what a new key may do. Only Name is required.
type KeyOptions struct {
	Name     string   `json:"name"`
	UserID   string   `json:"user_id,omitempty"` // "": the user of the client's key
	AllUsers bool     `json:"all_users,omitempty"`
	Rights   []string `json:"rights,omitempty"` // none: use

	ExpiresAt *time.Time `json:"expires_at,omitempty"` // nil: never
	Networks  []string   `json:"networks,omitempty"`   // in CIDR notation, or addresses; none: all
	Quotas    Quotas     `json:"quotas,omitempty"`     // within those of its user
}

// CreateKey makes an API key. Only its answer has the key's secret. Like [Client.Keys] and
// [Client.DeleteKey], it needs the right admin.
func (c *Client) CreateKey(ctx context.Context, o KeyOptions) (*Key, error) {
	return get[Key](ctx, c, http.MethodPost, "/v1/keys", o)
}

// RotateKey gives an API key a new secret, which only its answer has. The former one stays
// valid for the overlap, to the second. It needs the right admin.
func (c *Client) RotateKey(ctx context.Context, id string, overlap time.Duration) (*Key, error) {
	body := struct {
		Overlap int64 `json:"overlap_seconds"`
	}{int64(overlap / time.Second)}
	return get[Key](ctx, c, http.MethodPost, "/v1/keys/"+url.PathEscape(id)+"/rotate", body)
}

// Keys returns all API keys, the oldest first.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	var list struct {
		Keys []Key `json:"keys"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/keys", nil, &list)
	return list.Keys, err
}

// DeleteKey deletes an API key and closes what is open with it. A key cannot delete itself.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, "/v1/keys/"+url.PathEscape(id), nil, nil)
}
