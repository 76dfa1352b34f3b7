// Package request holds the options of a create ([Create]). [Resolver] fills in what they
// leave open from users' settings. The session's record stores the encoded options. A
// resume reads them from that record, also if an earlier version of Stasis wrote it.
// testdata/asked has examples.
package request

import (
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// OnLive says what a create does if another live session came from the same environment.
type OnLive string

const (
	OnLiveFork  OnLive = "fork"  // its own copy of the environment (the default)
	OnLiveShare OnLive = "share" // that live session itself
	OnLiveWait  OnLive = "wait"  // wait up to Create.Wait for it to end
	OnLiveFail  OnLive = "fail"  // environment_in_use
)

// Create holds the options of a session. Zero values mean the documented defaults, which
// package api fills in.
type Create struct {
	SessionID string // chosen by the caller; "" for a UUIDv7
	UserID    string // "" for the source's user, else the key's
	AgentName string
	Goal      string
	StartURL  string
	Engine    string // browser.EngineChrome or EngineShell; "": the user's setting, else the daemon's

	// The first of these that is set, in this order, is restored.
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
	Resume       bool          // SessionID may name an ended session, which is then resumed
	Idle         time.Duration // the session ends after this time without a client or a call
	Lifetime     time.Duration
	WebhookURL   string        // receives the session's events; "": none
	DiscardOnEnd bool          // on_timeout: discard
	Wait         time.Duration // how long to wait for a free slot or, with OnLiveWait, for the environment
	Labels       map[string]string
	Record       []string        // names of session.Recordable to record in addition
	Overrides    state.Overrides // they override the saved ones field by field
	Passkeys     *bool           // nil: as the environment had it
	// SharedContexts makes the contexts that clients create the session's own profile, unless a
	// client says otherwise. SharedWrites permits them to clear it; see mux.SharedContexts.
	SharedContexts, SharedWrites bool
	Origins                      state.Selection // the origins whose state is restored
	// Extensions are the IDs of extensions to add to the restored ones.
	Extensions []string
	// Egress narrows what the session may connect to; empty: all that the user may.
	Egress egress.List
	// Limits narrow what the session's browser may use; zero: all that the user may.
	Limits browser.Limits
	// RequestHash is the hash of the body. It identifies a repeated session_id.
	RequestHash string

	given      []string // with Resume: the options that the request has; see [Create.Given]
	goBack     string   // a resume's snapshot; see [Create.GoingBackTo]
	keptLimits bool     // a resume that does not name limits: they are those of the first create
	connects   bool     // a CDP client follows; see [Create.Connecting]
	moved      bool     // the session continues after a move; see [Create.Moved]
	restarts   bool     // a resume after the session's node was lost; see [Create.AfterLoss]
	placed     bool     // a node has placed it; see [Create.Placed]
}

// Moved returns the create with which a session continues that was moved from another node. It
// shares its environment with those with which it has shared it before.
func (r Create) Moved() Create {
	r.moved = true
	return r
}

// AfterLoss returns the resume that starts a session again because its node was lost and its create
// asked for that ([Create.Restart]).
func (r Create) AfterLoss() Create {
	r.restarts = true
	return r
}

// IsAfterLoss reports whether the session is started again after its node was lost.
func (r Create) IsAfterLoss() bool { return r.restarts }

// Shares reports whether the session may start although another one holds its environment.
func (r Create) Shares() bool { return r.moved || r.OnLiveOrDefault() == OnLiveFork }

// Placed returns the create that one of several nodes has placed on this one, at most for wait. It
// waits only for its environment, with [OnLiveWait]: for a place it waits on no node, but with the
// creates of all nodes.
func (r Create) Placed(wait time.Duration) Create {
	r.placed, r.Wait = true, min(r.Wait, wait)
	return r
}

// WaitsForPlace reports whether the create waits for a place on this node.
func (r Create) WaitsForPlace() bool { return r.Wait > 0 && !r.placed }

// Connecting returns the create of a caller that connects a CDP client as soon as the session is
// made. If the quotas allow no more sockets, no session is made.
func (r Create) Connecting() Create {
	r.connects = true
	return r
}

// Connects reports whether a CDP client follows.
func (r Create) Connects() bool { return r.connects }

// NewSessionID returns an ID for a session, for a caller that chooses it before a create.
func NewSessionID() string { return profiles.NewID() }

// Restore returns what a create needs of the environment that its session starts with.
// named are the extensions of [Create.Extensions].
func (r Create) Restore(named []profiles.Extension) restore.Request {
	return restore.Request{Engine: r.Engine, AllowMemory: r.AllowMemory, RestoreTabs: r.RestoreTabs,
		Overrides: r.Overrides, Passkeys: r.Passkeys, Origins: r.Origins, Extensions: named}
}

// SourceRequest returns which environment a create names.
func (r Create) SourceRequest() restore.SourceRequest {
	return restore.SourceRequest{FromSession: r.FromSession, FromEnvironment: r.FromEnvironment, FromDefaultOf: r.FromDefaultOf,
		SessionID: r.SessionID, UserID: r.UserID, FreshIfNone: r.FreshIfNone, SnapshotID: r.goBack}
}

// OnLiveOrDefault returns OnLive, or its default.
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
