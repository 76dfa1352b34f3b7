package client

import (
	"context"
	"net/http"
	"time"
)

// Extension is an extension that sessions can have.
type Extension struct {
	ID        string    `json:"id"` // as Chrome computes it
	UserID    string    `json:"user_id"`
	SHA256    string    `json:"sha256"`
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	SizeBytes int64     `json:"size_bytes"`
	CreatedAt time.Time `json:"created_at"`
}

// Extensions returns the extensions of the users that the key may act for.
func (c *Client) Extensions(ctx context.Context) ([]Extension, error) {
	var list struct {
		Extensions []Extension `json:"extensions"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/extensions", nil, &list)
	return list.Extensions, err
}
