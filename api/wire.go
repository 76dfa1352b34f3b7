package api

import (
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/state"
)

// sessionAnswer is a session on the wire.
type sessionAnswer struct {
	SessionID        string                 `json:"session_id"`
	Status           string                 `json:"status"`
	AgentName        string                 `json:"agent_name"`
	Goal             *string                `json:"goal"`
	AgentSessionType string                 `json:"agent_session_type"`
	EnvironmentType  string                 `json:"environment_type"`
	UserID           string                 `json:"user_id"`
	Engine           string                 `json:"engine"`
	CreatedAt        time.Time              `json:"created_at"`
	ExpiresAt        time.Time              `json:"expires_at"`
	EndedAt          *time.Time             `json:"ended_at"`
	Reason           *string                `json:"reason"`
	ReasonCode       string                 `json:"reason_code,omitempty"`
	EnvironmentID    string                 `json:"environment_id"`
	CDPURL           *string                `json:"cdp_url"`
	VNCURL           *string                `json:"vnc_url"`
	AgentURL         *string                `json:"agent_url"`
	HasAgent         bool                   `json:"has_agent"`
	Labels           map[string]string      `json:"labels"`
	BrowserRestarted bool                   `json:"browser_restarted"`
	Rescuing         bool                   `json:"rescuing"`
	Restored         *session.RestoreReport `json:"restored"`
	Outcome          *session.EndAnswer     `json:"outcome"`
	AutoSave         *autoSaveAnswer        `json:"auto_save"`
	IgnoredFields    []string               `json:"ignored_fields,omitempty"`
}

// session is the answer about a session, with URLs as this client reaches them.
func (s *Server) session(c *call, info session.Info) sessionAnswer {
	a := answerOf(info)
	urls := s.urls.of(c.Request())
	if ticket := info.Tickets[session.PurposeCDP]; ticket != "" {
		a.CDPURL = orNull(urls.cdp(info.ID, "", ticket))
	}
	if ticket := info.Tickets[session.PurposeView]; ticket != "" {
		a.VNCURL = orNull(urls.live(info.ID, ticket))
		a.AgentURL = a.VNCURL
	}
	return a
}

// answerOf is the answer about a session without URLs.
func answerOf(info session.Info) sessionAnswer {
	a := sessionAnswer{
		SessionID: info.ID, Status: string(info.Status), AgentName: info.AgentName, Goal: orNull(info.Goal),
		AgentSessionType: agentSessionType, EnvironmentType: environmentType,
		UserID: info.UserID, Engine: info.Engine, CreatedAt: info.CreatedAt.UTC(), ExpiresAt: info.ExpiresAt.UTC(),
		EndedAt: timeOrNull(info.EndedAt), Reason: orNull(info.Reason.Text), ReasonCode: string(info.Reason.Code), EnvironmentID: info.ID,
		Labels: info.Labels, BrowserRestarted: info.BrowserRestarted, Rescuing: info.Rescuing,
		HasAgent: info.HasAgent, Restored: info.Restored, Outcome: recorded[session.EndAnswer](info.Outcome),
		AutoSave: answerOfAutoSave(info.AutoSaved),
	}
	if a.Labels == nil {
		a.Labels = map[string]string{}
	}
	if a.Restored == nil {
		a.Restored = recorded[session.RestoreReport](info.Session.Restored)
	}
	if a.Restored != nil {
		report := wholeReport(*a.Restored)
		a.Restored = &report
	}
	if a.Outcome != nil {
		end := wholeEnd(*a.Outcome)
		a.Outcome = &end
	}
	return a
}

// recorded reads a record back; one that cannot be read is as if it were
// missing, so that it does not hide the session it belongs to.
func recorded[T any](data json.RawMessage) *T {
	v := new(T)
	if len(data) == 0 || json.Unmarshal(data, &v) != nil {
		return nil
	}
	return v
}

// wholeReport, wholeEnd and wholeSnapshot make absent lists empty ones.
func wholeReport(r session.RestoreReport) session.RestoreReport {
	r.Components, r.Warnings = components(r.Components), texts(r.Warnings)
	if r.Differences == nil {
		r.Differences = []state.Difference{}
	}
	return r
}

func wholeEnd(e session.EndAnswer) session.EndAnswer {
	if e.Snapshot != nil {
		snapshot := wholeSnapshot(*e.Snapshot)
		e.Snapshot = &snapshot
	}
	return e
}

func wholeSnapshot(s session.SnapshotInfo) session.SnapshotInfo {
	s.Components, s.Warnings = components(s.Components), texts(s.Warnings)
	if s.Logins == nil {
		s.Logins = []state.Login{}
	}
	s.CreatedAt = s.CreatedAt.UTC()
	if s.ExpiresAt != nil {
		s.ExpiresAt = timeOrNull(*s.ExpiresAt)
	}
	return s
}

func components(list []state.Component) []state.Component {
	if list == nil {
		return []state.Component{}
	}
	return list
}

func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
