package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// AuditEntry is an entry of the audit log. An empty string means that the entry does not
// have the value.
type AuditEntry struct {
	Number     int64     `json:"number"` // from 1, without gaps
	At         time.Time `json:"at"`
	By         string    `json:"by"` // key, first_key, ticket, link, daemon or unknown
	KeyID      string    `json:"key_id"`
	KeyUser    string    `json:"key_user"` // the user that the key acts for
	Address    string    `json:"address"`  // of the client
	Call       string    `json:"call"`     // an operationId of openapi.yaml, or an act of the daemon
	UserID     string    `json:"user_id"`  // whose data it is
	SessionID  string    `json:"session_id"`
	SnapshotID string    `json:"snapshot_id"`
	Object     string    `json:"object"` // another object, such as a key
	Detail     string    `json:"detail"`
	Outcome    string    `json:"outcome"`  // ok, refused or failed
	Code       string    `json:"code"`     // of an error
	Count      int64     `json:"count"`    // how many acts the entry stands for
	Previous   string    `json:"previous"` // the hash of the entry before
	Hash       string    `json:"hash"`
}

// AuditFilter selects entries of the audit log. The zero value selects all.
type AuditFilter struct {
	UserID      string // whose data it is
	KeyID       string
	Call        string
	SessionID   string
	Object      string // a snapshot or another object
	Outcome     string
	Since       time.Time // inclusive
	Until       time.Time // exclusive
	Others      bool      // only acts on data of another user than the key's
	OldestFirst bool
}

// Audit returns entries of the audit log, the newest first unless the filter says otherwise.
// It needs a key with the right admin, and ends with the first error.
func (c *Client) Audit(ctx context.Context, f AuditFilter) iter.Seq2[AuditEntry, error] {
	query := url.Values{}
	set(query, "user_id", f.UserID)
	set(query, "key_id", f.KeyID)
	set(query, "call", f.Call)
	set(query, "session_id", f.SessionID)
	set(query, "object", f.Object)
	set(query, "outcome", f.Outcome)
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, yes := range map[string]bool{"others": f.Others, "oldest_first": f.OldestFirst} {
		if yes {
			query.Set(name, strconv.FormatBool(yes))
		}
	}
	return pages(query, func(query string) (page []AuditEntry, next string, err error) {
		header, err := c.call(ctx, http.MethodGet, "/v1/audit?"+query, nil, &page)
		return page, header.Get("X-Next-Token"), err
	})
}
