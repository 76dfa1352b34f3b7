// Package browsers has the interfaces of a live browser as sessions see it, one for each
// purpose. [Chromes] implements [Launcher] with package browser. Errors are those of
// package browser.
package browsers

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/view"
	"github.com/stasisd/stasis/state"
)

// Identity says which Chrome runs.
type Identity interface {
	Engine() string
	Version() string
	UserAgent() string
	Protocol() string
}

// Loaded says how a Chrome got its environment.
type Loaded interface {
	SecondProfileReason() string
}

// Process is the life of a Chrome: its processes and its run directory.
type Process interface {
	Dir() *browser.Dir
	Done() <-chan struct{}
	Close(ctx context.Context) (state.Datadir, error)
	Kill(ctx context.Context) error
}

// Freezer stops a Chrome's processes and lets them run again.
type Freezer interface {
	Trim(ctx context.Context)
	Memory() int64
	Freeze(ctx context.Context) error
	Thaw(ctx context.Context) error
	Wake(ctx context.Context) error
	Frozen() bool
}

// Clients connects CDP clients to a Chrome.
type Clients interface {
	Admission() mux.Admission
	Serve(ctx context.Context, conn mux.Conn, options mux.ServeOptions) error
	CloseClients(ctx context.Context, code int, reason string) error
}

// Tabs drives the tabs of a Chrome and listens to their events.
type Tabs interface {
	Pages(ctx context.Context) ([]browser.Page, error)
	Navigate(ctx context.Context, url string) (string, error)
	Open(ctx context.Context, url string) error
	Screenshot(ctx context.Context) (jpeg []byte, url, title string, err error)
	Listen(notify func(browser.PageEvent), all bool) (stop func())
}

// Viewed shows the tabs of a Chrome to viewers.
type Viewed interface {
	View(ctx context.Context, conn view.Conn, v view.Viewer) error
}

// Reader reads the state of a Chrome over CDP.
type Reader interface {
	Capture(ctx context.Context) (state.Document, error)
	Cookies(ctx context.Context) ([]state.Cookie, error)
	Passkeys() (held state.Passkeys, enabled bool)
	Storage(ctx context.Context, origins []string) (browser.Storage, error)
}

// Verifier checks what a Chrome holds: whether a restored environment equals what was
// saved, and whether a login still works.
type Verifier interface {
	Verify(ctx context.Context, doc state.Document, report []state.Component) (state.Verification, error)
	VerifyThawed(ctx context.Context, doc state.Document) (state.Verification, error)
	CheckLogin(ctx context.Context, check browser.LoginCheck) (browser.LoginOutcome, error)
}

// Files reads the files of a Chrome's environment on disk.
type Files interface {
	Environment(ctx context.Context) ([]browser.File, error)
	AwaitTabs(ctx context.Context, doc state.Document) (waited bool)
	Precopy(ctx context.Context, c *browser.Copy) error
	Copy(ctx context.Context, c *browser.Copy) (stood time.Duration, err error)
}

// EgressLimiter limits what a Chrome connects to that waited for its session.
type EgressLimiter interface {
	Egress() browser.Egress
	LimitEgress(limits browser.Egress) error
}

// Limiter limits what a Chrome uses that waited for its session.
type Limiter interface {
	SetLimits(limits browser.Limits) error
}

// Chrome is a live browser that a session uses; see browser.Browser. Code that needs only
// a part should take that part.
type Chrome interface {
	Identity
	Loaded
	Process
	EgressLimiter
	Limiter
	Usage() browser.Usage
	Freezer
	Clients
	Tabs
	Viewed
	Reader
	Verifier
	Files
}

// Spare is a live, empty Chrome that can become a session's Chrome once; see
// browser.Spare.
type Spare interface {
	Dir() *browser.Dir
	Done() <-chan struct{}
	Fresh(ctx context.Context, o browser.Options) (Chrome, error)
	Restored(ctx context.Context, doc state.Document, o browser.Options) (Chrome, []state.Component, error)
	Kill(ctx context.Context) error
}

// Standby is a live Chrome that holds an environment and whose tabs are held. It can
// become a session's Chrome once; see browser.Standby.
type Standby interface {
	Dir() *browser.Dir
	Done() <-chan struct{}
	EgressLimiter
	Limiter
	Activate(ctx context.Context) (Chrome, []state.Component, error)
	Kill(ctx context.Context) error
}

// Launcher starts Chromes, each in its own run directory.
type Launcher interface {
	// Has returns nil if an engine is installed, else an error that says how to install
	// it.
	Has(engine string) error
	// CanLimitEgress returns nil if limits have an effect, else an error.
	CanLimitEgress(limits browser.Egress) error
	// CanLimit returns nil if [browser.Options.Limits] has an effect, else an error.
	CanLimit(l browser.Limits) error
	// Yields reports whether the owner of a session gets only what others leave of the
	// processors; see [browser.Options.Owner].
	Yields(owner string) bool
	// NewDir makes a run directory with a new name. The caller removes it.
	NewDir() (*browser.Dir, error)
	// EndOrphans ends the Chromes that a dead daemon left and returns their run directories.
	EndOrphans(ctx context.Context) ([]*browser.Dir, error)
	// Spare starts an empty Chrome. o has the options of the later session, as far as
	// they are known.
	Spare(ctx context.Context, dir *browser.Dir, o browser.Options) (Spare, error)
	Fresh(ctx context.Context, dir *browser.Dir, o browser.Options) (Chrome, error)
	Restored(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (Chrome, []state.Component, error)
	// Standby is like Restored, except that the tabs are held until [Standby.Activate].
	Standby(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (Standby, error)
}

// Discard ends an unneeded Chrome and removes its run directory, even if ctx has ended. If
// Chrome takes long to end, the directory is removed afterwards. Discard logs a failure.
func Discard(ctx context.Context, c Chrome, log *slog.Logger) {
	if err := c.Kill(context.WithoutCancel(ctx)); err != nil {
		log.Error(EndsLate, "error", err)
	}
	Remove(c.Dir(), log)
}

// EndsLate is the log's text about a Chrome that was killed and whose processes are not gone
// yet.
const EndsLate = "a Chrome takes long to end; its memory and its run directory are free only afterwards"

// Remove removes a run directory, as soon as its Chrome has ended. It logs a failure.
func Remove(dir *browser.Dir, log *slog.Logger) {
	if err := dir.Remove(); err != nil {
		log.Error("cannot remove a run directory; the next start of the daemon removes it", "error", err)
	}
}
