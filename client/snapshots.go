package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Snapshot is a saved environment.
type Snapshot struct {
	ID         string      `json:"id"`
	SessionID  string      `json:"session_id"`
	UserID     string      `json:"user_id"`
	Mode       string      `json:"mode"` // filesystem or memory
	Rescue     bool        `json:"rescue"`
	Auto       bool        `json:"auto"` // an automatic checkpoint
	Label      string      `json:"label"`
	CreatedAt  time.Time   `json:"created_at"`
	ExpiresAt  *time.Time  `json:"expires_at"`
	SizeBytes  int64       `json:"size_bytes"`
	Datadir    string      `json:"datadir"` // clean, live, crash, or none
	Chrome     string      `json:"chrome"`
	Engine     string      `json:"engine"`
	Components []Component `json:"components"`
	Warnings   []string    `json:"warnings"`
	Logins     []Login     `json:"logins"`
}

// Login is what looks like a login at a site.
type Login struct {
	Site        string     `json:"site"`
	ExpectedEnd *time.Time `json:"expected_end"` // nil: unknown
	Basis       string     `json:"basis"`
	Names       []string   `json:"names"` // of cookies and storage keys
	Expired     bool       `json:"expired"`
}

// Snapshots returns a user's snapshots, the newest first; user "" means those of all users that
// the key may act for. It ends with the first error.
func (c *Client) Snapshots(ctx context.Context, user string) iter.Seq2[Snapshot, error] {
	query := url.Values{}
	set(query, "user_id", user)
	return pages(query, func(query string) ([]Snapshot, string, error) {
		var page struct {
			Snapshots []Snapshot `json:"snapshots"`
			NextToken string     `json:"next_token"`
		}
		err := c.Call(ctx, http.MethodGet, "/v1/snapshots?"+query, nil, &page)
		return page.Snapshots, page.NextToken, err
	})
}

// Snapshot returns a snapshot.
func (c *Client) Snapshot(ctx context.Context, id string) (*Snapshot, error) {
	return get[Snapshot](ctx, c, http.MethodGet, snapshotPath(id), nil)
}

// DeleteSnapshot deletes a snapshot. One that a default names, or that a session needs, is
// refused.
func (c *Client) DeleteSnapshot(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, snapshotPath(id), nil, nil)
}

// Verification is the result of [Client.Verify].
type Verification struct {
	OK       bool `json:"ok"`
	Problems []struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"problems"`
}

// Verify reads a snapshot completely and says whether it is damaged.
func (c *Client) Verify(ctx context.Context, id string) (*Verification, error) {
	return get[Verification](ctx, c, http.MethodPost, snapshotPath(id)+"/verify", nil)
}

// Diff says what changed from one snapshot to another, without values.
type Diff struct {
	Changes []struct {
		Name    string   `json:"name"` // of a component, such as cookies
		Origin  string   `json:"origin"`
		Added   []string `json:"added"`
		Removed []string `json:"removed"`
		Changed []string `json:"changed"`
		Before  int      `json:"before"`
		After   int      `json:"after"`
	} `json:"changes"`
	NotCompared []struct {
		Name   string `json:"name"`
		Origin string `json:"origin"`
		Reason string `json:"reason"`
	} `json:"not_compared"`
}

// Diff compares two snapshots.
func (c *Client) Diff(ctx context.Context, from, to string) (*Diff, error) {
	return get[Diff](ctx, c, http.MethodGet, snapshotPath(from)+"/diff/"+url.PathEscape(to), nil)
}

// Export writes a snapshot's archive, which holds all of it, sealed to age public keys. Without
// recipients it stays sealed to the daemon's own.
func (c *Client) Export(ctx context.Context, id string, to io.Writer, recipients ...string) error {
	query := url.Values{"recipient": recipients}
	if len(recipients) == 0 {
		query.Set("sealed", "true")
	}
	answer, err := c.Send(ctx, http.MethodGet, snapshotPath(id)+"/archive?"+query.Encode(), "", nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	_, err = io.Copy(to, answer.Body)
	return err
}

func snapshotPath(id string) string { return "/v1/snapshots/" + url.PathEscape(id) }
