package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/stasisd/stasis/client"
)

// The types in this file are the parts of the API's answers that pages show and that package
// client does not have; see openapi.yaml.

type sessionAnswer struct {
	client.Session
	AgentName string `json:"agent_name"`
	Goal      string `json:"goal"`
	HasAgent  bool   `json:"has_agent"`
	Restarted bool   `json:"browser_restarted"`
	Rescuing  bool   `json:"rescuing"`
	AutoSave  *struct {
		IntervalSeconds int        `json:"interval_seconds"`
		LastSavedAt     *time.Time `json:"last_saved_at"`
		LastError       string     `json:"last_error"`
	} `json:"auto_save"`
}

// Live reports whether the session runs or is paused.
func (s sessionAnswer) Live() bool { return s.EndedAt == nil && !s.Rescuing && s.Status != "error" }

// LiveView returns the address of the live view, with control if the key has it.
func (s sessionAnswer) LiveView() string { return cmp.Or(s.ControlURL, s.ViewURL) }

// Path returns the restore path for people.
func (s sessionAnswer) Path() string {
	if s.Restored == nil {
		return "started empty"
	}
	return s.Restored.Path
}

// connected says who is connected: "1 client, 2 viewers".
func connected(u client.Usage) string {
	return count(u.Clients, "client") + ", " + count(u.Viewers, "viewer")
}

// lost returns the lines of what was not restored, with a reason.
func lost(components []client.Component) []client.Component {
	return slices.DeleteFunc(slices.Clone(components), func(c client.Component) bool {
		return c.Dropped == 0 && c.Expired == 0 && c.Reason == ""
	})
}

// kind says why a snapshot was made.
func kind(s client.Snapshot) string {
	switch {
	case s.Rescue:
		return "rescue"
	case s.Auto:
		return "automatic"
	default:
		return s.Mode
	}
}

type snapshotPage struct {
	Snapshots []client.Snapshot `json:"snapshots"`
	NextToken string            `json:"next_token"`
}

type runAnswer struct {
	ID        string     `json:"run_id"`
	Number    int        `json:"number"`
	Status    string     `json:"status"`
	Cause     string     `json:"cause"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
}

type messageAnswer struct {
	ID        int64      `json:"id"`
	Type      string     `json:"type"`
	Role      string     `json:"role"`
	Content   raw        `json:"content"`
	Name      string     `json:"name"`
	Arguments raw        `json:"arguments"`
	Result    raw        `json:"result"`
	Timestamp *time.Time `json:"timestamp"`
}

type noteAnswer struct {
	SessionID string     `json:"session_id"`
	UpdatedAt *time.Time `json:"updated_at"`
	Data      struct {
		ProjectPath   string         `json:"project_path"`
		FilesModified []string       `json:"files_modified"`
		CommandsRun   []string       `json:"commands_run"`
		KeyDecisions  []string       `json:"key_decisions"`
		OpenTasks     []string       `json:"open_tasks"`
		Extra         map[string]raw `json:"extra"`
	} `json:"session_data"`
}
