// Package request has what a create asks for ([Create]), what it leaves open to users'
// settings ([Resolver]), and its encoding in the session's record. A resume reads it back
// from there, also where an earlier version wrote it: examples are in
// testdata/asked.
package request

import (
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// OnLive says what a create does when another live session came from the same
// environment.
type OnLive string

const (
	OnLiveFork  OnLive = "fork"  // an own copy (the default)
	OnLiveShare OnLive = "share" // that live session itself
	OnLiveWait  OnLive = "wait"  // wait up to Wait for it to end
	OnLiveFail  OnLive = "fail"  // environment_in_use
)

// Create asks for a session. Zero values mean the documented defaults, which
// package api fills in.
type Create struct {
	SessionID string // chosen by the caller; "" for a UUIDv7
	UserID    string // "" for the source's user, else the key's
	AgentName string
	Goal      string
	StartURL  string
	Engine    string // browser.EngineChrome or EngineShell; "": the user's own, else the daemon's

	// At most the first of these that is set is looked at, in this order.
	FromSession     string // a session ID
	FromEnvironment string // a session ID or a snapshot ID
	FromDefaultOf   string // a user ID

	AllowMemory  bool // false restores from files only
	FreshIfNone  bool // if_missing: fresh
	RestoreTabs  bool
	ReadOnly     bool
	Persist      bool
	AutoSave     *autosave.Settings // nil: no automatic checkpoints
	Restart      bool               // restart: on_crash
	OnLive       OnLive
	Resume       bool          // SessionID may have ended: it lives again
	Options      bool          // with Resume: others than those of a resume are given
	Idle         time.Duration // no client and no call for this long ends it
	Lifetime     time.Duration
	WebhookURL   string        // told of what becomes of the session; "": nobody
	DiscardOnEnd bool          // on_timeout: discard
	Wait         time.Duration // for a free place or, with OnLiveWait, for the environment
	Labels       map[string]string
	Record       []string        // of session.Recordable: what is recorded besides what always is
	Overrides    state.Overrides // the saved ones apply where these name none
	Passkeys     *bool           // nil: as the environment had it
	Origins      state.Selection // whose state is brought back
	// Extensions are the IDs of those that the session is to have besides the
	// restored ones.
	Extensions []string
	// RequestHash identifies the body, for a repeated session_id.
	RequestHash string
}

// Restore is what a create asks of the environment that its session starts with. named
// are the extensions of [Create.Extensions].
func (r Create) Restore(named []profiles.Extension) restore.Request {
	return restore.Request{Engine: r.Engine, AllowMemory: r.AllowMemory, RestoreTabs: r.RestoreTabs,
		Overrides: r.Overrides, Passkeys: r.Passkeys, Origins: r.Origins, Extensions: named}
}

// Named is what a create names to start from.
func (r Create) Named() restore.Named {
	return restore.Named{FromSession: r.FromSession, FromEnvironment: r.FromEnvironment, FromDefaultOf: r.FromDefaultOf,
		SessionID: r.SessionID, UserID: r.UserID, FreshIfNone: r.FreshIfNone}
}

// OnLiveOrDefault is OnLive with the default filled in.
func (r Create) OnLiveOrDefault() OnLive {
	switch {
	case r.OnLive != "":
		return r.OnLive
	case r.Persist:
		return OnLiveFail
	default:
		return OnLiveFork
	}
}
