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

	tabs       *tabs
	guard      *guard
	extensions *extensionSet

	background sync.WaitGroup // tabs that are still on their way
	listeners  sync.WaitGroup // listeners; see Listen
	unloaded   restore.Unloaded
	cancel     context.CancelFunc
	ctx        context.Context // of the background work: ends with the browser
	options    Options
	relay      *relay.Relay            // nil unless a proxy wants credentials
	targets    *targetinit.Initialiser // nil where nothing is set on the targets
	passkeys   passkeys
	baseline   baseline.Baseline // what is known of the profile that was loaded
	// unflushed: there may be more localStorage than Chrome writes while it quits.
	unflushed atomic.Bool
	face      face       // what pages of the shell are told that it is
	ahead     shellFront // which tab of the shell is in front
}

// takeOptions sets what the browser is for, and which extensions are its own.
func (b *Browser) takeOptions(o Options) {
	b.options = o
	ids := make([]string, 0, len(o.Extensions))
	for _, e := range o.Extensions {
		ids = append(ids, e.ID)
	}
	b.mux.Addresses.SetExtensions(ids)
	b.extensions.wanted, b.extensions.shell = o.Extensions, b.shell()
}

// initialiseTargets begins to give the browser's targets, as they come, what the
// session sets on each. Without such a thing it attaches to nothing, so that a page
// has nothing to notice.
func (b *Browser) initialiseTargets(ctx context.Context) error {
	setups := setups(overridesOf(b.options, b.face), b.passkeys)
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

// setups are what a browser's targets are given as they come.
func setups(o overrides, p passkeys) []targetinit.Setup {
	var all []targetinit.Setup
	if o.needed() {
		all = append(all, o)
	}
	if p.given != nil {
		all = append(all, p.given)
	}
	return all
}

// Passkeys are those of the environment as far as is known without asking
// Chrome, which may be dead, and whether pages have them.
func (b *Browser) Passkeys() (held state.Passkeys, given bool) { return b.passkeys.held() }

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
