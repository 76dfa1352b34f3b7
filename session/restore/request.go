package restore

import (
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// Request is what a create asks of the environment that a session starts with.
type Request struct {
	Owner       string // whose session it is, as profiles.OwnerOf says
	Engine      string // browser.EngineChrome or browser.EngineShell
	AllowMemory bool   // false restores from files only
	RestoreTabs bool
	Overrides   state.Overrides // the saved ones apply where these are unset
	Passkeys    *bool           // nil: as the environment had it
	Origins     state.Selection // the origins whose state is restored
	Egress      browser.Egress  // what the session may connect to
	Limits      browser.Limits  // what the session's browser may use; zero: what the daemon allows
	// Extensions are those that the session gets in addition to the restored ones.
	Extensions []profiles.Extension
}

// options returns the options of a Chrome with these extensions.
func (r Request) options(installed []state.Extension) browser.Options {
	return browser.Options{Owner: r.Owner, Engine: r.Engine, RestoreTabs: r.RestoreTabs, Overrides: r.Overrides, Passkeys: r.Passkeys, Extensions: installed, Egress: r.Egress, Limits: r.Limits}
}

// Environment is what a session starts from.
type Environment struct {
	UserID   string
	Source   *Source            // nil: a fresh environment
	Snapshot *profiles.Snapshot // nil if Source is nil
	// Version is the version of the user's default at that time; 0: the user had none. A
	// save moves the default only if this is still its version.
	Version int64
}

// Engine returns the engine that saved the environment; "" for an empty one, and for one
// that was imported as state without a profile.
func (e Environment) Engine() string {
	if e.Snapshot == nil || state.Datadir(e.Snapshot.Datadir) == state.DatadirNone {
		return ""
	}
	return e.Snapshot.Engine
}

// Same reports whether another session starts from the same environment.
func (e Environment) Same(userID string, source Source, snapshotID string) bool {
	return e.UserID == userID && (*e.Source == source || e.Snapshot.ID == snapshotID)
}

// StartResult is a Chrome that started successfully, and how it was restored.
type StartResult struct {
	Chrome   browsers.Chrome
	Report   *Report        // nil for a fresh environment
	Document state.Document // the restored state document
	// Overrides are what pages see: the request's own, else the saved ones.
	Overrides state.Overrides
	// Extensions are the restored ones and those that the request names.
	Extensions []state.Extension
	// Partial: the environment has only some origins, and the default that it came from
	// has more.
	Partial bool
	Notes   *Notes    // restored with it; nil: none
	At      time.Time // when the restore was complete; zero for a fresh environment
}

// ProfileUnused reports whether the profile was left unused because a newer Chrome than
// the running one wrote it.
func (s StartResult) ProfileUnused() bool { return tooNew(s.Document, s.Chrome) }

// tooNew reports whether a newer Chrome than the running one wrote the profile of a
// document. A parked Chrome has no document here, so it is never too new.
func tooNew(doc state.Document, running browsers.Identity) bool {
	return doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, running.Version())
}
