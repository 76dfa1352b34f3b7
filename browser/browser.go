// Package browser is a running Chrome: started, an environment restored, driven by
// clients, read, frozen, closed.
//
// It composes the packages below it. launch owns the process tree, mux the CDP pipe and
// its policy, profile the user data directory on disk. targetinit gives each target what
// the session sets, and passkey is one such thing. capture reads state over CDP, apply
// writes it, restore holds and releases the tabs, verify compares. Browser does not know
// where archives are kept or whose environment it holds.
package browser

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/passkey"
	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/browser/targetinit"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// The engines: which binary of Chrome runs.
const (
	EngineChrome = "chrome" // full Chrome
	EngineShell  = "shell"  // the headless shell
)

// Dir is a run directory: everything that one Chrome has on disk.
type Dir = launch.Dir

// Browser is one live Chrome. Its methods are safe for concurrent use; what
// order they make sense in is the session's to know.
type Browser struct {
	dir     *Dir
	process *launch.Process
	mux     *mux.Mux
	driver  *mux.Driver
	now     func() time.Time

	version   string // "156.0.8078.79"
	userAgent string
	protocol  string

	background sync.WaitGroup // tabs that are still on their way
	// Pages that leave for about:blank. They begin at any time, on the multiplexer's
	// reader, so only the end waits for them.
	sendingAway sync.WaitGroup
	listeners   sync.WaitGroup // listeners; see Listen
	unloaded    restore.Unloaded
	cancel      context.CancelFunc
	ctx         context.Context // of the background work: ends with the browser
	options     Options
	relay       *relay.Relay            // nil unless a proxy wants credentials
	targets     *targetinit.Initialiser // nil where nothing is set on the targets
	passkeys    *passkey.Authenticators // nil where pages have no authenticator
	kept        state.Passkeys          // of the environment, where pages have none
	baseline    baseline.Baseline       // what is known of the profile that was loaded
	leftover    leftover                // of the empty profile that it was loaded beside
	// unflushed: there may be more localStorage than Chrome writes while it quits.
	unflushed atomic.Bool
	face      face              // what pages of the shell are told that it is
	ahead     shellFront        // which tab of the shell is in front
	idle      []state.Extension // of the environment, which the shell has no use for
}

// initialiseTargets begins to give the browser's targets, as they come, what the
// session sets on each. Without such a thing it attaches to nothing, so that a page
// has nothing to notice.
func (b *Browser) initialiseTargets(ctx context.Context) error {
	setups := b.setups()
	if len(setups) == 0 {
		return nil
	}
	driver, err := b.mux.Driver(ctx)
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, "browser.targets", "Chrome did not answer")
	}
	b.targets = targetinit.New(driver, setups...)
	return b.targets.Start(ctx, b.ctx, b.mux.Hooks)
}

// setups are what the browser's targets are given as they come.
func (b *Browser) setups() []targetinit.Setup {
	var all []targetinit.Setup
	if o := b.overrides(); o.needed() {
		all = append(all, o)
	}
	if b.passkeys != nil {
		all = append(all, b.passkeys)
	}
	return all
}

// givePasskeys decides whether pages are to have an authenticator: as the
// options ask, else as the environment had it.
func (b *Browser) givePasskeys(saved state.Passkeys) {
	if saved.Given(b.options.Passkeys) {
		b.passkeys = passkey.New(b.driver, saved.Credentials, b.process.Frozen)
		b.mux.Hooks.OnDetach(b.passkeys.RepairSoon)
	} else {
		b.kept = saved
	}
}

// passkeyLines report what became of the saved passkeys.
func (b *Browser) passkeyLines(saved state.Passkeys) []state.Component {
	if b.passkeys == nil {
		return state.PasskeyLines(saved, false, nil)
	}
	return state.PasskeyLines(saved, true, b.passkeys.Refused())
}

// Passkeys are those of the environment as far as is known without asking
// Chrome, which may be dead, and whether pages have them.
func (b *Browser) Passkeys() (held state.Passkeys, given bool) {
	if b.passkeys == nil {
		return b.kept, false
	}
	return state.Passkeys{Enabled: true, Credentials: b.passkeys.Credentials()}, true
}

// Engine is which binary runs: EngineChrome or EngineShell.
func (b *Browser) Engine() string {
	if b.shell() {
		return EngineShell
	}
	return EngineChrome
}

func (b *Browser) shell() bool { return b.options.Engine == EngineShell }

// Version is Chrome's version, such as "156.0.8078.79".
func (b *Browser) Version() string { return b.version }

// UserAgent is what Chrome tells sites.
func (b *Browser) UserAgent() string { return b.userAgent }

// Protocol is the CDP version, such as "1.3".
func (b *Browser) Protocol() string { return b.protocol }

// Dir is where the browser lives on disk.
func (b *Browser) Dir() *Dir { return b.dir }

// Done is closed when Chrome is of no use any more: it has died, or its pipe has.
// Clients hear of that no sooner. Of its processes some may be left, until Kill.
func (b *Browser) Done() <-chan struct{} { return b.mux.Done() }
