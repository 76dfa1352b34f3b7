package restore

import (
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// Request is what a session asks of the environment that it starts with.
type Request struct {
	Engine      string // browser.EngineChrome or browser.EngineShell
	AllowMemory bool   // false restores from files only
	RestoreTabs bool
	Overrides   state.Overrides // the saved ones apply where these name none
	Passkeys    *bool           // nil: as the environment had it
	Origins     state.Selection // whose state comes back
	// Extensions are those that the session has besides the restored ones.
	Extensions []profiles.Extension
}

// options are those of a Chrome that has these extensions.
func (r Request) options(installed []state.Extension) browser.Options {
	return browser.Options{Engine: r.Engine, RestoreTabs: r.RestoreTabs, Overrides: r.Overrides, Passkeys: r.Passkeys, Extensions: installed}
}

// Environment is what a session starts from.
type Environment struct {
	UserID   string
	Source   *Source            // nil: a fresh environment
	Snapshot *profiles.Snapshot // nil with Source
	// Version is the user's default that was current then; 0 is none. A save moves
	// the default from this version only.
	Version int64
}

// Same reports whether another session starts from the same environment.
func (e Environment) Same(userID string, source Source, snapshotID string) bool {
	return e.UserID == userID && (*e.Source == source || e.Snapshot.ID == snapshotID)
}

// Started is a Chrome that came up, and how.
type Started struct {
	Chrome   browsers.Chrome
	Report   *Report        // nil for a fresh environment
	Document state.Document // what was restored
	// Overrides are what pages see: the request's own, else the saved ones.
	Overrides state.Overrides
	// Extensions are those that it has, restored and named ones.
	Extensions []state.Extension
	// Partial: it has only some origins, and the default that it came from has more.
	Partial bool
	Notes   *Notes    // that came with it; nil: none
	At      time.Time // when it was in place; zero for a fresh environment
}

// ProfileUnused reports whether the profile was not used, because a newer Chrome
// than this one wrote it.
func (s Started) ProfileUnused() bool { return tooNew(s.Document, s.Chrome) }

// tooNew reports whether a newer Chrome than the running one wrote a document's
// profile. The document of a parked Chrome is not known here.
func tooNew(doc state.Document, running browsers.Identity) bool {
	return doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, running.Version())
}
