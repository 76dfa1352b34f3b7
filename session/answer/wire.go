package answer

import (
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/wire"
)

// These are the same for every session of the session API: its browser is a Chrome driven
// over CDP.
const (
	AgentSessionType = "managed-cdp"
	EnvironmentType  = "chrome-1"
)

// Session is the JSON of a session, in answers and in webhooks. The URLs depend on the
// address by which the client reached the daemon; they are null here. NodeID is null without a
// cluster and once the session has ended.
type Session struct {
	SessionID        string            `json:"session_id"`
	Status           string            `json:"status"`
	AgentName        string            `json:"agent_name"`
	Goal             *string           `json:"goal"`
	AgentSessionType string            `json:"agent_session_type"`
	EnvironmentType  string            `json:"environment_type"`
	UserID           string            `json:"user_id"`
	Engine           string            `json:"engine"`
	CreatedAt        time.Time         `json:"created_at"`
	ExpiresAt        time.Time         `json:"expires_at"`
	EndedAt          *time.Time        `json:"ended_at"`
	Reason           *string           `json:"reason"`
	ReasonCode       string            `json:"reason_code,omitempty"`
	EnvironmentID    string            `json:"environment_id"`
	CDPURL           *string           `json:"cdp_url"`
	VNCURL           *string           `json:"vnc_url"`
	AgentURL         *string           `json:"agent_url"`
	HasAgent         bool              `json:"has_agent"`
	Usage            *Usage            `json:"usage"`
	Labels           map[string]string `json:"labels"`
	BrowserRestarted bool              `json:"browser_restarted"`
	Rescuing         bool              `json:"rescuing"`
	Restored         *restore.Report   `json:"restored"`
	Outcome          *save.EndAnswer   `json:"outcome"`
	UndoUntil        *time.Time        `json:"undo_until,omitempty"`
	AutoSave         *autosave.Answer  `json:"auto_save"`
	NodeID           *string           `json:"node_id"`
	IgnoredFields    []string          `json:"ignored_fields,omitempty"`
}

// Answer returns the JSON value of the session, without URLs.
func (i Info) Answer() Session {
	a := Session{
		SessionID: i.ID, Status: string(i.Status), AgentName: i.AgentName, Goal: OrNull(i.Goal),
		AgentSessionType: AgentSessionType, EnvironmentType: EnvironmentType,
		UserID: i.UserID, Engine: i.Engine, CreatedAt: i.CreatedAt.UTC(), ExpiresAt: i.ExpiresAt.UTC(),
		EndedAt: TimeOrNull(i.EndedAt), Reason: OrNull(i.Reason.Text), ReasonCode: string(i.Reason.Code), EnvironmentID: i.ID,
		Labels: i.Labels, BrowserRestarted: i.BrowserRestarted, Rescuing: i.Rescuing,
		HasAgent: i.HasAgent, Usage: i.Usage, Restored: i.Restored, Outcome: recorded[save.EndAnswer](i.Outcome),
		AutoSave: i.AutoSaved.Answer(), UndoUntil: i.UndoUntil,
	}
	if i.EndedAt.IsZero() {
		a.NodeID = OrNull(i.NodeID)
	}
	if a.Labels == nil {
		a.Labels = map[string]string{}
	}
	if a.Restored == nil {
		a.Restored = recorded[restore.Report](i.Session.Restored)
	}
	if a.Restored != nil {
		report := a.Restored.Normalized()
		a.Restored = &report
	}
	if a.Outcome != nil {
		end := a.Outcome.Normalized()
		a.Outcome = &end
	}
	return a
}

// HookSession returns the JSON of a session for webhooks, without tickets and without
// agents' notes.
func HookSession(rec profiles.Session) json.RawMessage {
	answer := Info{Session: rec, HasAgent: rec.WebhookURL != ""}.Answer()
	if answer.Restored != nil {
		answer.Restored.Notes = nil // Answer has made a copy
	}
	body, err := wire.Marshal(answer)
	if err != nil {
		panic(err) // an answer always encodes
	}
	return body
}

// recorded decodes a recorded value. It returns nil for one that cannot be decoded, so
// that it does not hide the session.
func recorded[T any](data json.RawMessage) *T {
	v := new(T)
	if len(data) == 0 || json.Unmarshal(data, &v) != nil {
		return nil
	}
	return v
}

// OrNull returns nil for an empty string, which is null in JSON.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// TimeOrNull returns a time in UTC; nil for the zero time, which is null in JSON.
func TimeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
