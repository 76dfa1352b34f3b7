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
