package client

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// CreateOptions are the options of a session that programs use most, as in
// docs/configuration.md. The zero value starts an empty environment with all defaults.
type CreateOptions struct {
	SessionID string `json:"session_id,omitempty"`
	UserID    string `json:"user_id,omitempty"`
	// What is restored; the first that is set counts.
	FromSession     string `json:"restore_from_session_id,omitempty"`
	FromEnvironment string `json:"restore_from_environment_id,omitempty"`
	FromDefaultOf   string `json:"restore_default_environment_from_user_id,omitempty"`
	// IfMissing "fresh" starts an empty environment if there is nothing to restore.
	IfMissing      string            `json:"if_missing,omitempty"`
	Engine         string            `json:"engine,omitempty"`          // chrome or shell
	DefaultContext string            `json:"default_context,omitempty"` // new or environment
	SharedWrites   string            `json:"shared_writes,omitempty"`   // refuse or allow
	StartURL       string            `json:"start_url,omitempty"`
	ReadOnly       bool              `json:"read_only,omitempty"`
	Persist        bool              `json:"persist,omitempty"`
	Passkeys       *bool             `json:"passkeys,omitempty"`
	OnLive         string            `json:"on_live,omitempty"` // fork, share, wait or fail
	OnTimeout      string            `json:"on_timeout,omitempty"`
	WebhookURL     string            `json:"webhook_url,omitempty"`
	IdleSeconds    int64             `json:"idle_timeout_seconds,omitempty"`
	MaxSeconds     int64             `json:"max_lifetime_seconds,omitempty"`
	WaitSeconds    int64             `json:"wait_seconds,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Extensions     []string          `json:"extensions,omitempty"`
	Origins        *Selection        `json:"origins,omitempty"`
}

// Selection names the origins whose state is restored or saved.
type Selection struct {
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
}

// Session is a session as the daemon describes it.
type Session struct {
	ID         string            `json:"session_id"`
	UserID     string            `json:"user_id"`
	Status     string            `json:"status"` // ready, running, paused, completed, terminated or error
	Engine     string            `json:"engine"`
	CreatedAt  time.Time         `json:"created_at"`
	ExpiresAt  time.Time         `json:"expires_at"`
	EndedAt    *time.Time        `json:"ended_at"`
	Reason     string            `json:"reason"`      // why it ended, for people
	ReasonCode string            `json:"reason_code"` // the same, for programs
	CDPURL     string            `json:"cdp_url"`     // contains a secret; "" once the session has ended
	ViewURL    string            `json:"vnc_url"`     // the live view, to look on; contains a secret
	ControlURL string            `json:"agent_url"`   // the live view with control; contains a secret; "" without the right
	Labels     map[string]string `json:"labels"`
	Restored   *RestoreReport    `json:"restored"` // nil for a fresh session
	Outcome    *EndResult        `json:"outcome"`  // how it ended; nil before
	Usage      *Usage            `json:"usage"`    // nil once it has ended
	NodeID     string            `json:"node_id"`  // the node on which it lives; "" without a cluster and once it has ended
}

// Usage is what a live session uses.
type Usage struct {
	Clients     int        `json:"clients"`
	Viewers     int        `json:"viewers"`
	MemoryBytes int64      `json:"memory_bytes"` // 0 if it was not measured yet
	MeasuredAt  *time.Time `json:"measured_at"`  // when the memory was measured
}

// RestoreReport says what of an environment came back, and how.
type RestoreReport struct {
	SnapshotID     string       `json:"snapshot_id"`
	Path           string       `json:"path"` // parked, standby, warm or cold
	FallbackReason string       `json:"fallback_reason"`
	DurationMS     int64        `json:"duration_ms"`
	Verification   string       `json:"verification"` // pending, ok or mismatch
	Components     []Component  `json:"components"`
	Differences    []Difference `json:"differences"`
	Warnings       []string     `json:"warnings"`
}

// Component says how much of one kind of state was saved, restored and dropped.
type Component struct {
	Name     string `json:"name"`   // such as cookies
	Origin   string `json:"origin"` // "": the kind has none
	Saved    int    `json:"saved"`
	Restored int    `json:"restored"`
	Dropped  int    `json:"dropped"`
	Expired  int    `json:"expired"`
	Reason   string `json:"reason"`
	More     int    `json:"more"` // how many lines of other origins this one sums up
}

// Difference is what differs from the saved state in one component of an origin.
type Difference struct {
	Component string   `json:"component"`
	Origin    string   `json:"origin"`
	By        string   `json:"by"` // who made it: restore or site
	Missing   int      `json:"missing"`
	Changed   int      `json:"changed"`
	Added     int      `json:"added"`
	Names     []string `json:"names"`
}

// CreateSession starts a browser. The caller ends it with [Client.EndSession].
func (c *Client) CreateSession(ctx context.Context, o CreateOptions) (*Session, error) {
	return get[Session](ctx, c, http.MethodPost, "/v1/sessions", o)
}

// Session returns a session.
func (c *Client) Session(ctx context.Context, id string) (*Session, error) {
	return get[Session](ctx, c, http.MethodGet, sessionPath(id), nil)
}

// Report returns the restore report of a session. Once the verification is not pending any
// more it does not change.
func (c *Client) Report(ctx context.Context, id string) (*RestoreReport, error) {
	return get[RestoreReport](ctx, c, http.MethodGet, sessionPath(id)+"/restore-report", nil)
}

// ListSessions says which sessions to list. Zero values mean all.
type ListSessions struct {
	Status string
	UserID string
	// Missing is called for each page that lacks what only other nodes know of their live
	// sessions, such as the addresses, with the IDs of these nodes. nil: it is not.
	Missing func(nodes []string)
}

// Sessions returns sessions of the users that the key may act for, the newest first. It asks
// the daemon page by page, and ends with the first error.
func (c *Client) Sessions(ctx context.Context, o ListSessions) iter.Seq2[Session, error] {
	query := url.Values{}
	set(query, "status", o.Status)
	set(query, "user_id", o.UserID)
	return pages(query, func(query string) (page []Session, next string, err error) {
		header, err := c.call(ctx, http.MethodGet, "/v1/sessions?"+query, nil, &page)
		if nodes := header.Get("X-Missing-Nodes"); nodes != "" && o.Missing != nil {
			o.Missing(strings.Split(nodes, ", "))
		}
		return page, header.Get("X-Next-Token"), err
	})
}

// EndOptions say what becomes of a session's environment. The zero value discards it.
type EndOptions struct {
	Mode          string // none, filesystem or memory
	SaveAsDefault bool   // of the session's user
	Conflict      string // keep or overwrite, if the default has moved meanwhile
	Origins       Selection
}

// EndResult is the outcome of an end or of a checkpoint.
type EndResult struct {
	Success        bool            `json:"success"`
	Deleted        bool            `json:"deleted"`
	Code           string          `json:"code"` // version_conflict: the default was kept
	Message        string          `json:"message"`
	Snapshot       *Snapshot       `json:"snapshot"` // nil if nothing was saved
	Default        *DefaultOutcome `json:"default"`  // nil if the default was not to move
	UnsavedChanges bool            `json:"unsaved_changes"`
	UndoUntil      *time.Time      `json:"undo_until"` // until then what was discarded can be saved; nil: it cannot
}

// Kept returns the result of an end that has saved the session and kept the default, whose error
// is version_conflict; nil for any other error.
func Kept(err error) *EndResult {
	var refused *Error
	if !errors.As(err, &refused) || refused.Snapshot == nil {
		return nil
	}
	return &EndResult{Code: refused.Code, Message: refused.Message, Snapshot: refused.Snapshot, Default: refused.Default}
}

// DefaultOutcome says whether a user's default has moved.
type DefaultOutcome struct {
	Moved   bool   `json:"moved"`
	Version int64  `json:"version"` // that is current now
	Reason  string `json:"reason"`  // why it has not moved
}

// EndPath returns the path and query of the call of [Client.EndSession], for callers that need
// more of its answer than an EndResult.
func EndPath(id string, o EndOptions) string {
	query := url.Values{}
	set(query, "save_snapshot_mode", o.Mode)
	set(query, "default_conflict", o.Conflict)
	if o.SaveAsDefault {
		query.Set("save_as_default", "true")
	}
	query["origins_include"], query["origins_exclude"] = o.Origins.Include, o.Origins.Exclude
	return strings.TrimSuffix(sessionPath(id)+"?"+query.Encode(), "?")
}

// EndSession ends a session, and saves it if o says so.
func (c *Client) EndSession(ctx context.Context, id string, o EndOptions) (*EndResult, error) {
	return get[EndResult](ctx, c, http.MethodDelete, EndPath(id, o), nil)
}

// CheckpointOptions are the options of a save of a running session.
type CheckpointOptions struct {
	SaveAsDefault bool   `json:"save_as_default,omitempty"`
	Conflict      string `json:"default_conflict,omitempty"`
	Label         string `json:"label,omitempty"`
}

// Checkpoint saves a session and does not end it.
func (c *Client) Checkpoint(ctx context.Context, id string, o CheckpointOptions) (*EndResult, error) {
	return get[EndResult](ctx, c, http.MethodPost, sessionPath(id)+"/snapshots", o)
}

// Pause freezes a session's Chrome. A client that connects thaws it.
func (c *Client) Pause(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodPost, sessionPath(id)+"/pause", nil, nil)
}

// Resume thaws a paused session, or starts an ended one again under its ID. It returns the
// session.
func (c *Client) Resume(ctx context.Context, id string) (*Session, error) {
	if err := c.Call(ctx, http.MethodPost, sessionPath(id)+"/resume", nil, nil); err != nil {
		return nil, err
	}
	return c.Session(ctx, id)
}

// Link is a shared link to the live view of a session.
type Link struct {
	ID        string    `json:"link_id"`
	Control   bool      `json:"control"`
	ExpiresAt time.Time `json:"expires_at"`
	URL       string    `json:"url"` // contains a secret; only in the answer to Share
}

// Share makes a link to the live view for a person, with control or to look on, until it
// expires (1 minute to 7 days) or the session ends.
func (c *Client) Share(ctx context.Context, id string, control bool, life time.Duration) (*Link, error) {
	return get[Link](ctx, c, http.MethodPost, sessionPath(id)+"/links", map[string]any{"control": control, "expires_in_seconds": int64(life / time.Second)})
}

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// set sets a parameter unless its value is "".
func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// get makes a call and returns its decoded answer.
func get[T any](ctx context.Context, c *Client, method, path string, in any) (*T, error) {
	out := new(T)
	if err := c.Call(ctx, method, path, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// pages returns the items of all pages. read returns the page of a query, and where the next one
// begins; "": it is the last.
func pages[T any](query url.Values, read func(query string) (page []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		query.Set("limit", "1000")
		for {
			page, next, err := read(query.Encode())
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			if err != nil {
				var none T
				yield(none, err)
			}
			if err != nil || next == "" {
				return
			}
			query.Set("start_after", next)
		}
	}
}
