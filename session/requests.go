package session

import (
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// Conflict says what a save does when the default has moved meanwhile.
type Conflict string

const (
	ConflictKeep      Conflict = "keep"      // keep the winner; the snapshot is kept too
	ConflictOverwrite Conflict = "overwrite" // move the default all the same
)

// SaveMode is what a delete does with the environment.
type SaveMode string

const (
	SaveNone       SaveMode = "none"
	SaveFilesystem SaveMode = "filesystem"
	SaveMemory     SaveMode = "memory"
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
// the api room fills in.
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
	Record       []string        // of [Recordable]; what is recorded besides what always is
	Overrides    state.Overrides // the saved ones apply where these name none
	Passkeys     *bool           // nil: as the environment had it
	Origins      state.Selection // whose state is brought back
	// Extensions are the IDs of those that the session is to have besides the
	// restored ones.
	Extensions []string
	// RequestHash identifies the body, for a repeated session_id.
	RequestHash string

	// installed are the extensions that the session has, once it has them.
	installed []state.Extension
	// partial: what it was restored from, or what it was given of it, has only
	// some origins, and is not the default as it was.
	partial bool
}

// restore is what a create asks of the environment that its session starts with.
// named are the extensions of [Create.Extensions].
func (r Create) restore(named []profiles.Extension) restore.Request {
	return restore.Request{Engine: r.Engine, AllowMemory: r.AllowMemory, RestoreTabs: r.RestoreTabs,
		Overrides: r.Overrides, Passkeys: r.Passkeys, Origins: r.Origins, Extensions: named}
}

// named is what a create names to start from.
func (r Create) named() restore.Named {
	return restore.Named{FromSession: r.FromSession, FromEnvironment: r.FromEnvironment, FromDefaultOf: r.FromDefaultOf,
		SessionID: r.SessionID, UserID: r.UserID, FreshIfNone: r.FreshIfNone}
}

// browser is what the browser room is told of a create.
func (r Create) browser() browser.Options {
	return browser.Options{Engine: r.Engine, RestoreTabs: r.RestoreTabs, Overrides: r.Overrides, Passkeys: r.Passkeys, Extensions: r.installed}
}

// again is the same for a Chrome that takes over within the session: what was
// open then is to be open again, whatever the create wanted of an earlier one.
func (r Create) again() browser.Options {
	o := r.browser()
	o.RestoreTabs = true
	return o
}

// EndRequest asks for a session's end.
type EndRequest struct {
	Mode          SaveMode
	SaveAsDefault bool
	Conflict      Conflict
	Origins       state.Selection // whose state is saved; of SaveFilesystem alone
}

// ListRequest asks for a page of sessions.
type ListRequest struct {
	Status     string // "" for every status
	UserID     string // "" for all that the caller may see
	Limit      int
	StartAfter string
}

// EndAllRequest says whose sessions a DELETE /v1/sessions ends.
type EndAllRequest struct {
	EndRequest
	UserID string // "" for the caller's own; else the caller must be allowed to act for it
	All    bool   // everybody's: needs the admin right
}
