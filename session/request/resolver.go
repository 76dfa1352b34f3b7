package request

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/settings"
)

// Users looks users' settings up; see [settings.Users].
type Users interface {
	For(ctx context.Context, userID string) (settings.Settings, error)
}

// Engines reports which engines there are; see browsers.Launcher.
type Engines interface {
	// Has returns an error where the engine is not there.
	Has(engine string) error
}

// UploadedExtensions are the records of uploaded extensions; see [profiles.ExtensionStore].
type UploadedExtensions interface {
	Extension(ctx context.Context, userID, id string) (profiles.Extension, error)
}

// Resolver finds what a create leaves open or only names. Its methods are safe for
// concurrent use.
type Resolver struct {
	engine     string
	users      Users
	engines    Engines
	extensions UploadedExtensions
}

// NewResolver makes a Resolver. engine is the daemon's own; "": browser.EngineChrome.
func NewResolver(engine string, users Users, engines Engines, extensions UploadedExtensions) *Resolver {
	return &Resolver{engine: engine, users: users, engines: engines, extensions: extensions}
}

// Engine decides in which engine a create runs: in the one that it names, else
// the user's own, else the daemon's. Unsupported where that is not there, or has
// no use for what the create asks for.
func (v *Resolver) Engine(ctx context.Context, r Create, userID string) (string, error) {
	engine := r.Engine
	if engine == "" {
		set, err := v.users.For(ctx, userID)
		if err != nil && !fault.Is(err, fault.UserNotFound) {
			return "", err
		}
		engine = settings.Given(set.Engine)
	}
	if engine == "" {
		engine = v.engine
	}
	if engine == "" {
		engine = browser.EngineChrome
	}
	if engine == browser.EngineShell && len(r.Extensions) > 0 {
		return "", fault.New(fault.Unsupported, "session.create",
			"extensions: the shell engine has none; leave them out, or ask for engine chrome")
	}
	return engine, v.engines.Has(engine)
}

// Extensions looks up those that a create names by ID: the session's user's own,
// else the caller's. A third user's are not looked at, whoever asks: anybody can
// give an extension the ID of another.
func (v *Resolver) Extensions(ctx context.Context, c access.Caller, userID string, ids []string) ([]profiles.Extension, error) {
	var named []profiles.Extension
	for _, id := range ids {
		e, err := v.extensions.Extension(ctx, userID, id)
		if fault.Is(err, fault.ExtensionNotFound) {
			e, err = v.extensions.Extension(ctx, c.UserID, id)
		}
		if fault.Is(err, fault.ExtensionNotFound) {
			return nil, fault.New(fault.ExtensionNotFound, "session.create", "extensions: there is no extension %s; upload it first", id)
		}
		if err != nil {
			return nil, err
		}
		named = append(named, e)
	}
	return named, nil
}
