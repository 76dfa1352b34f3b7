package console

import "time"

// The types in this file are the parts of the API's answers that pages show; see
// openapi.yaml.

type sessionAnswer struct {
	ID        string            `json:"session_id"`
	Status    string            `json:"status"`
	AgentName string            `json:"agent_name"`
	Goal      string            `json:"goal"`
	UserID    string            `json:"user_id"`
	Engine    string            `json:"engine"`
	CreatedAt *time.Time        `json:"created_at"`
	ExpiresAt *time.Time        `json:"expires_at"`
	EndedAt   *time.Time        `json:"ended_at"`
	Reason    string            `json:"reason"`
	CDPURL    string            `json:"cdp_url"`
	ViewURL   string            `json:"vnc_url"`
	AgentURL  string            `json:"agent_url"`
	HasAgent  bool              `json:"has_agent"`
	Usage     *usageAnswer      `json:"usage"`
	Labels    map[string]string `json:"labels"`
	Restarted bool              `json:"browser_restarted"`
	Rescuing  bool              `json:"rescuing"`
	Restored  *restoreReport    `json:"restored"`
	Outcome   *endAnswer        `json:"outcome"`
	AutoSave  *struct {
		IntervalSeconds int        `json:"interval_seconds"`
		LastSnapshotID  string     `json:"last_snapshot_id"`
		LastSavedAt     *time.Time `json:"last_saved_at"`
		Failures        int        `json:"failures"`
		LastError       string     `json:"last_error"`
	} `json:"auto_save"`
}

type usageAnswer struct {
	Clients     int        `json:"clients"`
	Viewers     int        `json:"viewers"`
	MemoryBytes int64      `json:"memory_bytes"`
	MeasuredAt  *time.Time `json:"measured_at"`
}

// Connected says who is connected: "1 client, 2 viewers".
func (u usageAnswer) Connected() string {
	return count(u.Clients, "client") + ", " + count(u.Viewers, "viewer")
}

// Live reports whether the session runs or is paused.
func (s sessionAnswer) Live() bool { return s.EndedAt == nil && !s.Rescuing && s.Status != "error" }

// LiveView returns the address of the live view, with control if the key has it.
func (s sessionAnswer) LiveView() string {
	if s.AgentURL != "" {
		return s.AgentURL
	}
	return s.ViewURL
}

// Path returns the restore path for people.
func (s sessionAnswer) Path() string {
	if s.Restored == nil {
		return "started empty"
	}
	return s.Restored.Path
}

type restoreReport struct {
	Source struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"source"`
	SnapshotID     string       `json:"snapshot_id"`
	RequestedMode  string       `json:"requested_mode"`
	Mode           string       `json:"mode"`
	Path           string       `json:"path"`
	FallbackReason string       `json:"fallback_reason"`
	DurationMS     int64        `json:"duration_ms"`
	Datadir        string       `json:"datadir"`
	Verification   string       `json:"verification"`
	Components     []component  `json:"components"`
	Differences    []difference `json:"differences"`
	Warnings       []string     `json:"warnings"`
	Chrome         struct {
		Saved   string `json:"saved"`
		Running string `json:"running"`
	} `json:"chrome"`
}

// Lost returns the lines of what was not restored, with a reason.
func (r restoreReport) Lost() []component {
	var lost []component
	for _, c := range r.Components {
		if c.Dropped > 0 || c.Expired > 0 || c.Reason != "" {
			lost = append(lost, c)
		}
	}
	return lost
}

type component struct {
	Name     string `json:"name"`
	Origin   string `json:"origin"`
	Saved    int    `json:"saved"`
	Restored int    `json:"restored"`
	Dropped  int    `json:"dropped"`
	Expired  int    `json:"expired"`
	Reason   string `json:"reason"`
	More     int    `json:"more"`
}

type difference struct {
	Component string   `json:"component"`
	Origin    string   `json:"origin"`
	By        string   `json:"by"`
	Missing   int      `json:"missing"`
	Changed   int      `json:"changed"`
	Added     int      `json:"added"`
	Names     []string `json:"names"`
}

type endAnswer struct {
	Success  bool            `json:"success"`
	Deleted  bool            `json:"deleted"`
	Message  string          `json:"message"`
	Snapshot *snapshotAnswer `json:"snapshot"`
	Default  *struct {
		Moved   bool   `json:"moved"`
		Version int64  `json:"version"`
		Reason  string `json:"reason"`
	} `json:"default"`
	UnsavedChanges bool       `json:"unsaved_changes"`
	UndoUntil      *time.Time `json:"undo_until"`
}

type snapshotAnswer struct {
	ID         string        `json:"id"`
	SessionID  string        `json:"session_id"`
	UserID     string        `json:"user_id"`
	Mode       string        `json:"mode"`
	Rescue     bool          `json:"rescue"`
	Auto       bool          `json:"auto"`
	Label      string        `json:"label"`
	CreatedAt  *time.Time    `json:"created_at"`
	ExpiresAt  *time.Time    `json:"expires_at"`
	SizeBytes  int64         `json:"size_bytes"`
	Datadir    string        `json:"datadir"`
	Chrome     string        `json:"chrome"`
	Engine     string        `json:"engine"`
	Components []component   `json:"components"`
	Warnings   []string      `json:"warnings"`
	Logins     []loginAnswer `json:"logins"`
}

// Kind says why the snapshot was made.
func (s snapshotAnswer) Kind() string {
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
	Snapshots []snapshotAnswer `json:"snapshots"`
	NextToken string           `json:"next_token"`
}

type loginAnswer struct {
	Site        string     `json:"site"`
	ExpectedEnd *time.Time `json:"expected_end"`
	Basis       string     `json:"basis"`
	Names       []string   `json:"names"`
	Expired     bool       `json:"expired"`
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

type fileAnswer struct {
	Name       string     `json:"name"`
	SizeBytes  int64      `json:"size_bytes"`
	ModifiedAt *time.Time `json:"modified_at"`
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
