package request

import (
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/state"
)

// storedVersion is the version of [storedCreate] that Encode writes.
const storedVersion = 1

// storedCreate is a [Create] as a session's record stores it, sealed, for a resume. It is
// JSON with a version. Records without a version use the field names in goNames.
// Durations are in nanoseconds.
type storedCreate struct {
	Version int `json:"version"`

	SessionID       string            `json:"session_id,omitempty"`
	UserID          string            `json:"user_id,omitempty"`
	AgentName       string            `json:"agent_name,omitempty"`
	Goal            string            `json:"goal,omitempty"`
	StartURL        string            `json:"start_url,omitempty"`
	Engine          string            `json:"engine,omitempty"`
	FromSession     string            `json:"from_session,omitempty"`
	FromEnvironment string            `json:"from_environment,omitempty"`
	FromDefaultOf   string            `json:"from_default_of,omitempty"`
	AllowMemory     bool              `json:"allow_memory,omitempty"`
	FreshIfNone     bool              `json:"fresh_if_none,omitempty"`
	RestoreTabs     bool              `json:"restore_tabs,omitempty"`
	ReadOnly        bool              `json:"read_only,omitempty"`
	Persist         bool              `json:"persist,omitempty"`
	AutoSave        *storedAutoSave   `json:"auto_save,omitempty"`
	Restart         bool              `json:"restart,omitempty"`
	OnLive          OnLive            `json:"on_live,omitempty"`
	Resume          bool              `json:"resume,omitempty"`
	Idle            time.Duration     `json:"idle_ns,omitempty"`
	Lifetime        time.Duration     `json:"lifetime_ns,omitempty"`
	WebhookURL      string            `json:"webhook_url,omitempty"`
	DiscardOnEnd    bool              `json:"discard_on_end,omitempty"`
	Wait            time.Duration     `json:"wait_ns,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Record          []string          `json:"record,omitempty"`
	Overrides       state.Overrides   `json:"overrides,omitzero"`
	Passkeys        *bool             `json:"passkeys,omitempty"`
	Origins         state.Selection   `json:"origins,omitzero"`
	Extensions      []string          `json:"extensions,omitempty"`
	Egress          egress.List       `json:"egress,omitzero"`
	Limits          browser.Limits    `json:"limits,omitzero"`
	SharedContexts  bool              `json:"shared_contexts,omitempty"`
	SharedWrites    bool              `json:"shared_writes,omitempty"`
	RequestHash     string            `json:"request_hash,omitempty"`
}

// storedAutoSave is an [autosave.Settings] as a record stores it.
type storedAutoSave struct {
	Interval   time.Duration `json:"interval_ns"`
	Navigation bool          `json:"navigation,omitempty"`
	Login      bool          `json:"login,omitempty"`
	Disconnect bool          `json:"disconnect,omitempty"`
	Message    bool          `json:"message,omitempty"`
	Keep       int           `json:"keep"`
}

// goNames maps the field names of records without a version to those of version 1. The
// old names are those of Go's fields, of a create and of its auto_save.
var goNames = map[string]string{
	"SessionID": "session_id", "UserID": "user_id", "AgentName": "agent_name", "Goal": "goal", "StartURL": "start_url", "Engine": "engine",
	"FromSession": "from_session", "FromEnvironment": "from_environment", "FromDefaultOf": "from_default_of",
	"AllowMemory": "allow_memory", "FreshIfNone": "fresh_if_none", "RestoreTabs": "restore_tabs", "ReadOnly": "read_only", "Persist": "persist",
	"AutoSave": "auto_save", "Interval": "interval_ns", "Navigation": "navigation", "Login": "login", "Disconnect": "disconnect", "Keep": "keep",
	"Restart": "restart", "OnLive": "on_live", "Resume": "resume", "Idle": "idle_ns", "Lifetime": "lifetime_ns",
	"WebhookURL": "webhook_url", "DiscardOnEnd": "discard_on_end", "Wait": "wait_ns", "Labels": "labels", "Record": "record",
	"Overrides": "overrides", "Passkeys": "passkeys", "Origins": "origins", "Extensions": "extensions", "RequestHash": "request_hash",
}

// Encode encodes a create for a record, in the newest version.
func Encode(r Create) []byte {
	return profiles.JSON(storedCreate{Version: storedVersion,
		SessionID: r.SessionID, UserID: r.UserID, AgentName: r.AgentName, Goal: r.Goal, StartURL: r.StartURL, Engine: r.Engine,
		FromSession: r.FromSession, FromEnvironment: r.FromEnvironment, FromDefaultOf: r.FromDefaultOf,
		AllowMemory: r.AllowMemory, FreshIfNone: r.FreshIfNone, RestoreTabs: r.RestoreTabs, ReadOnly: r.ReadOnly, Persist: r.Persist,
		AutoSave: (*storedAutoSave)(r.AutoSave), Restart: r.Restart, OnLive: r.OnLive, Resume: r.Resume,
		Idle: r.Idle, Lifetime: r.Lifetime, WebhookURL: r.WebhookURL, DiscardOnEnd: r.DiscardOnEnd, Wait: r.Wait,
		Labels: r.Labels, Record: r.Record, Overrides: r.Overrides, Passkeys: r.Passkeys, Origins: r.Origins,
		Extensions: r.Extensions, Egress: r.Egress, Limits: r.Limits, SharedContexts: r.SharedContexts, SharedWrites: r.SharedWrites, RequestHash: r.RequestHash})
}

// Decode decodes what Encode of this or an earlier version wrote. A newer version is
// unsupported; anything else is store_failed.
func Decode(raw []byte) (Create, error) {
	const op = "session.asked"
	var a storedCreate
	var version struct {
		Version *int `json:"version"`
	}
	err := json.Unmarshal(raw, &version)
	switch {
	case err != nil:
	case version.Version == nil:
		if raw, err = renamed(raw); err == nil {
			err = json.Unmarshal(raw, &a)
		}
	case *version.Version != storedVersion:
		return Create{}, fault.New(fault.Unsupported, op, "the recorded options have version %d, and this Stasis reads version %d; use the Stasis that wrote them, or a newer one",
			*version.Version, storedVersion)
	default:
		err = json.Unmarshal(raw, &a)
	}
	if err != nil {
		return Create{}, fault.Wrap(err, fault.StoreFailed, op, "the recorded options are not valid JSON of a create")
	}
	return Create{
		SessionID: a.SessionID, UserID: a.UserID, AgentName: a.AgentName, Goal: a.Goal, StartURL: a.StartURL, Engine: a.Engine,
		FromSession: a.FromSession, FromEnvironment: a.FromEnvironment, FromDefaultOf: a.FromDefaultOf,
		AllowMemory: a.AllowMemory, FreshIfNone: a.FreshIfNone, RestoreTabs: a.RestoreTabs, ReadOnly: a.ReadOnly, Persist: a.Persist,
		AutoSave: (*autosave.Settings)(a.AutoSave), Restart: a.Restart, OnLive: a.OnLive, Resume: a.Resume,
		Idle: a.Idle, Lifetime: a.Lifetime, WebhookURL: a.WebhookURL, DiscardOnEnd: a.DiscardOnEnd, Wait: a.Wait,
		Labels: a.Labels, Record: a.Record, Overrides: a.Overrides, Passkeys: a.Passkeys, Origins: a.Origins,
		Extensions: a.Extensions, Egress: a.Egress, Limits: a.Limits, SharedContexts: a.SharedContexts, SharedWrites: a.SharedWrites, RequestHash: a.RequestHash}, nil
}

// renamed returns an object with the names of version 1, also in its auto_save.
func renamed(raw []byte) ([]byte, error) {
	var was map[string]json.RawMessage
	if err := json.Unmarshal(raw, &was); err != nil || was == nil {
		return raw, err
	}
	now := map[string]json.RawMessage{}
	for name, value := range was {
		if name == "AutoSave" {
			var err error
			if value, err = renamed(value); err != nil {
				return nil, err
			}
		}
		if name = goNames[name]; name != "" {
			now[name] = value
		}
	}
	return profiles.JSON(now), nil
}
