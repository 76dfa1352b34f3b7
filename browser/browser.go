// Package browser controls one running Chrome: it starts Chrome, restores an environment,
// serves CDP clients, reads and freezes the browser, and closes it.
//
// It combines the packages below it. launch runs the process tree. mux owns the CDP pipe
// and the CDP policy. profile reads and writes the user data directory on disk.
// targetinit applies the session's settings to each target; passkey is one such setting.
// capture reads state over CDP, and apply writes it. restore pauses and releases the
// tabs. verify compares. Package browser does not know where archives are stored or which
// user an environment belongs to.
package browser

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/browser/targetinit"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// The engines: which Chrome binary runs.
const (
	EngineChrome = "chrome" // full Chrome
	EngineShell  = "shell"  // the headless shell
)

// Dir is a run directory. It holds everything that one Chrome has on disk.
type Dir = launch.Dir

// Browser is one live Chrome. Its methods are safe for concurrent use. The session
// decides in which order it calls them.
type Browser struct {
	dir     *Dir
	process *launch.Process
	mux     *mux.Mux
	driver  *mux.Driver
	now     func() time.Time

	version   string // "156.0.8078.79"
	userAgent string
	protocol  string

	tabs       *tabs
	guard      *guard
	extensions *extensionSet

	background          sync.WaitGroup // tabs that are still being opened
	listeners           sync.WaitGroup // listeners; see Listen
	pendingTabs         restore.PendingTabs
	cancel              context.CancelFunc
	ctx                 context.Context // context of the background work; ends with the browser
	options             Options
	relay               *relay.Relay            // nil unless one is needed for the proxy
	targets             *targetinit.Initialiser // nil if nothing is set on the targets
	passkeys            passkeys
	entered             bool              // the environment's files were moved into the spare's profile
	secondProfileReason string            // why Chrome opened the environment as a second profile; "" if it did not
	openRest            func()            // opens the last gates; nil without gates
	late                *lateCaches       // nil if the environment was complete at once
	baseline            baseline.Baseline // what is known about the profile that was loaded
	// unflushed: pages may have more localStorage than Chrome writes while it quits.
	unflushed  atomic.Bool
	appearance appearance // which browser the shell's pages see
	foreground *foreground
	starter    *Starter
	usage      *usage
	unlimit    sync.Once // see [Starter.unlimitEgress]
}

// setOptions sets the browser's options and the IDs of its extensions.
func (b *Browser) setOptions(o Options) {
	b.options = o
	b.usage.join(b.ctx, b.starter.Shares, o.Owner, b.process)
	ids := make([]string, 0, len(o.Extensions))
	for _, e := range o.Extensions {
		ids = append(ids, e.ID)
	}
	b.mux.Addresses.SetExtensions(ids)
	b.extensions.wanted, b.extensions.shell = o.Extensions, b.shell()
}

// initialiseTargets starts to apply the session's settings to every new target. If there
// are none, it attaches to no target, so that pages cannot notice anything.
func (b *Browser) initialiseTargets(ctx context.Context) error {
	setups := setups(overridesOf(b.options, b.appearance), b.passkeys)
	if len(setups) == 0 {
		return nil
	}
	driver, err := b.mux.Driver(ctx)
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, "browser.targets", "Chrome did not accept a CDP connection")
	}
	b.targets = targetinit.New(driver, setups...)
	return b.targets.Start(ctx, b.ctx, b.mux.Hooks)
}

// setups returns what is applied to each new target.
func setups(o overrides, p passkeys) []targetinit.Setup {
	var all []targetinit.Setup
	if o.needed() {
		all = append(all, o)
	}
	if p.authenticators != nil {
		all = append(all, p.authenticators)
	}
	return all
}

// Passkeys returns the environment's passkeys as far as they are known without a request
// to Chrome, which may have crashed. enabled reports whether pages have an authenticator.
func (b *Browser) Passkeys() (held state.Passkeys, enabled bool) { return b.passkeys.held() }

// Engine returns which binary runs: EngineChrome or EngineShell.
func (b *Browser) Engine() string {
	if b.shell() {
		return EngineShell
	}
	return EngineChrome
}

func (b *Browser) shell() bool { return b.options.Engine == EngineShell }

// Version returns Chrome's version, such as "156.0.8078.79".
func (b *Browser) Version() string { return b.version }

// UserAgent returns the User-Agent that Chrome sends to sites.
func (b *Browser) UserAgent() string { return b.userAgent }

// Protocol returns the CDP version, such as "1.3".
func (b *Browser) Protocol() string { return b.protocol }

// Dir returns the browser's run directory.
func (b *Browser) Dir() *Dir { return b.dir }

// Done is closed when Chrome is no longer usable: Chrome or its pipe has ended. Clients
// are not notified before that. Some of its processes may remain until Kill.
func (b *Browser) Done() <-chan struct{} { return b.mux.Done() }
