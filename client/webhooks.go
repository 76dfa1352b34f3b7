package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Delivery is a webhook that the daemon has sent or is still to send.
type Delivery struct {
	ID            string     `json:"id"` // the webhook-id of each attempt
	SessionID     string     `json:"session_id"`
	UserID        string     `json:"user_id"`
	URL           string     `json:"url"`
	Event         string     `json:"event"` // such as session.created
	State         string     `json:"state"` // pending, delivered or failed
	Attempts      int        `json:"attempts"`
	LastError     string     `json:"last_error"` // why the last attempt failed
	CreatedAt     time.Time  `json:"created_at"`
	LastAttemptAt *time.Time `json:"last_attempt_at"`
	NextAttemptAt *time.Time `json:"next_attempt_at"` // nil unless it is pending
}

// Deliveries returns the deliveries in a state, the newest first; state "" means all. It ends
// with the first error.
func (c *Client) Deliveries(ctx context.Context, state string) iter.Seq2[Delivery, error] {
	query := url.Values{}
	set(query, "state", state)
	return pages(query, func(query string) (page []Delivery, next string, err error) {
		header, err := c.call(ctx, http.MethodGet, "/v1/webhooks/deliveries?"+query, nil, &page)
		return page, header.Get("X-Next-Token"), err
	})
}

// Resend sends a delivery again, whatever its state, and returns it.
func (c *Client) Resend(ctx context.Context, id string) (*Delivery, error) {
	return get[Delivery](ctx, c, http.MethodPost, "/v1/webhooks/deliveries/"+url.PathEscape(id)+"/resend", nil)
}

// WebhookSecret describes the secret that signs the webhooks to a receiver.
type WebhookSecret struct {
	UserID            string     `json:"user_id"`
	URL               string     `json:"url"` // "": the user's receivers without their own secret
	CreatedAt         time.Time  `json:"created_at"`
	FormerSecretUntil *time.Time `json:"former_secret_until"` // how long the secret before it signs too; nil: it does not
	Secret            string     `json:"secret,omitempty"`    // only in the answer to SetWebhookSecret, if the daemon made it
}

// WebhookSecretOptions say which receiver gets which secret. No field is required.
type WebhookSecretOptions struct {
	UserID  string        // "": the user of the client's key
	URL     string        // as in the webhook_url of sessions; "": the user's receivers without their own secret
	Secret  string        // whsec_ and 24 to 64 bytes in base64; "": the daemon makes one
	Overlap time.Duration // how long the present secret signs too, to the second
}

// SetWebhookSecret gives a receiver of webhooks its own secret.
func (c *Client) SetWebhookSecret(ctx context.Context, o WebhookSecretOptions) (*WebhookSecret, error) {
	return get[WebhookSecret](ctx, c, http.MethodPut, "/v1/webhooks/secrets", struct {
		UserID  string `json:"user_id,omitempty"`
		URL     string `json:"url,omitempty"`
		Secret  string `json:"secret,omitempty"`
		Overlap int64  `json:"overlap_seconds"`
	}{o.UserID, o.URL, o.Secret, int64(o.Overlap / time.Second)})
}

// WebhookSecrets lists the receivers that have their own secret, of a user or of all
// users ("") that the key may act for.
func (c *Client) WebhookSecrets(ctx context.Context, user string) ([]WebhookSecret, error) {
	query := url.Values{}
	set(query, "user_id", user)
	var list struct {
		Secrets []WebhookSecret `json:"secrets"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/webhooks/secrets?"+query.Encode(), nil, &list)
	return list.Secrets, err
}

// DeleteWebhookSecret removes the secret of a receiver; see [WebhookSecretOptions].
func (c *Client) DeleteWebhookSecret(ctx context.Context, user, receiver string) error {
	query := url.Values{}
	set(query, "user_id", user)
	set(query, "url", receiver)
	return c.Call(ctx, http.MethodDelete, "/v1/webhooks/secrets?"+query.Encode(), nil, nil)
}
