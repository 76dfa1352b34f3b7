package request

import (
	"cmp"
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/settings"
)

// Users looks up users' settings; see [settings.Users].
type Users interface {
	For(ctx context.Context, userID string) (settings.Settings, error)
	Egress(ctx context.Context, userID string) (browser.Egress, error)
	SessionLimits(ctx context.Context, userID string) (own, daemon browser.Limits, err error)
}

// Engines reports which engines are installed; see browsers.Launcher.
type Engines interface {
	// Has returns an error if the engine is not installed.
	Has(engine string) error
	// CanLimitEgress returns an error if the addresses that sessions connect to cannot be
	// limited.
	CanLimitEgress(limits browser.Egress) error
	// CanLimit returns an error if limits of what sessions use cannot be put in place.
	CanLimit(l browser.Limits) error
}

// UploadedExtensions looks up the records of uploaded extensions; see
// [profiles.ExtensionStore].
type UploadedExtensions interface {
	Extension(ctx context.Context, userID, id string) (profiles.Extension, error)
}

// Resolver fills in what a create leaves open, and looks up what it names. Its methods
// are safe for concurrent use.
type Resolver struct {
	engine     string
	users      Users
	engines    Engines
	extensions UploadedExtensions
}

// NewResolver makes a Resolver. engine is the daemon's setting; "" means
// browser.EngineChrome.
func NewResolver(engine string, users Users, engines Engines, extensions UploadedExtensions) *Resolver {
	return &Resolver{engine: engine, users: users, engines: engines, extensions: extensions}
}

// Engine returns the engine of a create: the one it names, else the user's, else the one
// that saved the environment (saved; "" for none), else the daemon's. The environment's is
// passed over if it is not installed, or cannot do what the create requests. For the
// others that is an error with the code unsupported.
func (v *Resolver) Engine(ctx context.Context, r Create, userID, saved string) (string, error) {
	engine := r.Engine
	if engine == "" {
		set, err := v.users.For(ctx, userID)
		if err != nil && !fault.Is(err, fault.UserNotFound) {
			return "", err
		}
		engine = settings.ValueOrZero(set.Engine)
	}
	if engine == "" && saved != "" && v.can(saved, r) == nil {
		return saved, nil
	}
	engine = cmp.Or(engine, v.engine, browser.EngineChrome)
	return engine, v.can(engine, r)
}

// can returns an error if an engine is not installed, or cannot do what a create requests.
func (v *Resolver) can(engine string, r Create) error {
	if engine == browser.EngineShell && len(r.Extensions) > 0 {
		return fault.New(fault.Unsupported, "session.create",
			"extensions: the shell engine does not support extensions; leave them out, or use engine chrome")
	}
	return v.engines.Has(engine)
}

// Egress returns what a session may connect to: what its user's settings and the create
// allow.
func (v *Resolver) Egress(ctx context.Context, r Create, userID string) (limits browser.Egress, err error) {
	if limits, err = v.users.Egress(ctx, userID); err != nil {
		return limits, err
	}
	if !r.Egress.Empty() {
		limits.Lists = append(limits.Lists, r.Egress)
	}
	if len(limits.Lists) > 0 {
		err = v.engines.CanLimitEgress(limits)
	}
	return limits, err
}

// Limits returns what a session's browser may use: at most what the daemon and the user's
// settings allow. More is invalid_field. A resume that does not name limits gets the lower of
// those it had and what is allowed now: the caller cannot change what the record has.
func (v *Resolver) Limits(ctx context.Context, r Create, userID string) (browser.Limits, error) {
	own, daemon, err := v.users.SessionLimits(ctx, userID)
	given := r.Limits
	if r.keptLimits {
		given = browser.Limits{}
	}
	if err == nil {
		err = settings.CheckLimits(given, own, daemon)
	}
	if err == nil {
		err = v.engines.CanLimit(own.Within(given))
	}
	return r.Limits.Within(own).Within(daemon), err
}

// Extensions looks up the extensions that a create names by ID: first those of the
// session's user, then those of the caller's user. It never looks at other users'
// extensions, because anyone can give an extension the ID of another.
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
