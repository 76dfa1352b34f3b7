package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/settings"
)

// createBody is the body of POST /v1/sessions and the query of /v1/connect.
type createBody struct {
	AgentName    string `json:"agent_name"`
	Goal         string `json:"goal" empty:"ok"`
	MaxSteps     int64  `json:"max_steps"` // accepted and ignored: Stasis runs no agent
	AgentSession string `json:"agent_session_type"`
	Environment  string `json:"environment_type"`

	FromSession     string `json:"restore_from_session_id"`
	FromEnvironment string `json:"restore_from_environment_id"`
	FromDefaultOf   string `json:"restore_default_environment_from_user_id"`
	AllowMemory     bool   `json:"enable_memory_snapshot"`

	SessionID   string            `json:"session_id"`
	UserID      string            `json:"user_id"`
	IfMissing   string            `json:"if_missing"`
	Engine      string            `json:"engine"`
	StartURL    string            `json:"start_url"`
	RestoreTabs bool              `json:"restore_tabs"`
	Passkeys    *bool             `json:"passkeys"`
	Context     string            `json:"default_context"`
	Writes      string            `json:"shared_writes"`
	ReadOnly    bool              `json:"read_only"`
	Persist     bool              `json:"persist"`
	AutoSave    *autoSaveBody     `json:"auto_save"`
	OnLive      string            `json:"on_live"`
	Resume      bool              `json:"resume"`
	Restart     string            `json:"restart"`
	OnTimeout   string            `json:"on_timeout"`
	Idle        int64             `json:"idle_timeout_seconds"`
	Lifetime    int64             `json:"max_lifetime_seconds"`
	Wait        int64             `json:"wait_seconds"`
	Labels      map[string]string `json:"labels"`
	Origins     selectionBody     `json:"origins"`
	Extensions  []string          `json:"extensions"`
	Record      []string          `json:"record"`
	Egress      egressBody        `json:"egress"`
	Limits      settings.Limits   `json:"limits"`
	overridesBody

	WebhookURL string `json:"webhook_url"`

	given []string // the names of the options that the client gave
}

// newCreate returns a body that holds the documented defaults.
func newCreate() createBody {
	return createBody{
		AgentName: "agi-0", AgentSession: answer.AgentSessionType, Environment: answer.EnvironmentType,
		Context: "new", Writes: "refuse",
		AllowMemory: true, IfMissing: "error", Restart: "never", RestoreTabs: true,
		OnTimeout: "save", Idle: 900, Lifetime: 21600,
	}
}

// check checks every value against what is allowed. It also sets the default of on_live,
// which depends on persist.
func (b *createBody) check() error {
	if b.OnLive == "" {
		b.OnLive = string(request.OnLiveFork)
		if b.Persist {
			b.OnLive = string(request.OnLiveFail)
		}
	}
	if b.AutoSave != nil && b.AutoSave.off {
		b.AutoSave = nil
	}
	return firstOf(
		b.AutoSave.check(),
		onlySupported("agent_session_type", b.AgentSession, answer.AgentSessionType),
		onlySupported("environment_type", b.Environment, answer.EnvironmentType),
		isEngine("engine", b.Engine),
		atMost("agent_name", b.AgentName, 128),
		atMost("goal", b.Goal, 64<<10),
		within("max_steps", b.MaxSteps, 0, 1<<53),
		isID("session_id", b.SessionID),
		isID("restore_from_session_id", b.FromSession),
		isID("restore_from_environment_id", b.FromEnvironment),
		isUserID("restore_default_environment_from_user_id", b.FromDefaultOf),
		isUserID("user_id", b.UserID),
		oneOf("if_missing", b.IfMissing, "error", "fresh"),
		oneOf("on_live", b.OnLive, "fork", "share", "wait", "fail"),
		oneOf("restart", b.Restart, "on_crash", "never"),
		oneOf("on_timeout", b.OnTimeout, "save", "discard"),
		oneOf("default_context", b.Context, "new", "environment"),
		oneOf("shared_writes", b.Writes, "refuse", "allow"),
		isPageURL("start_url", b.StartURL),
		withinSeconds("idle_timeout_seconds", b.Idle, 1, 86400),
		withinSeconds("max_lifetime_seconds", b.Lifetime, 1, 604800),
		withinSeconds("wait_seconds", b.Wait, 0, 600),
		areLabels(b.Labels),
		b.Origins.check("origins"),
		b.checkSelection(),
		b.checkResume(),
		b.overridesBody.check(),
		areExtensions(b.Extensions),
		areRecorded(b.Record),
		b.Egress.check("egress."),
		areLimits(&b.Limits),
		isHookURL("webhook_url", b.WebhookURL),
	)
}

// request converts the body for package session.
func (b *createBody) request() request.Create {
	return request.Create{
		AutoSave: b.AutoSave.request(), WebhookURL: b.WebhookURL,
		SessionID: b.SessionID, UserID: b.UserID, AgentName: b.AgentName, Goal: b.Goal, StartURL: b.StartURL, Engine: b.Engine,
		FromSession: b.FromSession, FromEnvironment: b.FromEnvironment, FromDefaultOf: b.FromDefaultOf,
		AllowMemory: b.AllowMemory, FreshIfNone: b.IfMissing == "fresh", RestoreTabs: b.RestoreTabs,
		ReadOnly: b.ReadOnly, Persist: b.Persist, OnLive: request.OnLive(b.OnLive), Resume: b.Resume, Restart: b.Restart == "on_crash",
		Idle: seconds(b.Idle), Lifetime: seconds(b.Lifetime), Wait: seconds(b.Wait),
		Origins: b.Origins.selection(), DiscardOnEnd: b.OnTimeout == "discard", Labels: b.Labels, Extensions: b.Extensions, Record: b.Record, Overrides: b.overrides(), Passkeys: b.Passkeys, Egress: b.Egress.list(), Limits: b.Limits.Browser(),
		SharedContexts: b.Context == "environment", SharedWrites: b.Writes == "allow",
	}.Given(b.given)
}

// audit completes an audited call with what the create asks for, which the entry of one that
// is refused has. Its object is the source.
func (b *createBody) audit(a *auditedCall) {
	a.SessionID, a.Object = b.SessionID, cmp.Or(b.FromSession, b.FromEnvironment)
	if user := cmp.Or(b.UserID, b.FromDefaultOf); user != "" {
		a.UserID = user
	}
}

// checkResume checks the fields of a create that resumes a session.
func (b *createBody) checkResume() error {
	switch {
	case b.Resume && b.SessionID == "":
		return invalid("resume", "needs session_id, the session to resume")
	case b.Resume && (b.FromSession != "" || b.FromEnvironment != "" || b.FromDefaultOf != ""):
		return invalid("resume", "restores the session's own newest snapshot; leave restore_from_… out")
	}
	return nil
}

// setGiven records a name that the client gave.
func (b *createBody) setGiven(name string) {
	if request.IsOption(name) {
		b.given = append(b.given, name)
	}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// areRecorded checks what a create requests to be recorded.
func areRecorded(list []string) error {
	for i, name := range list {
		if !slices.Contains(session.Recordable, name) || slices.Contains(list[:i], name) {
			return invalid(fmt.Sprintf("record[%d]", i), "must be one of %s, each once", strings.Join(session.Recordable, ", "))
		}
	}
	return nil
}
