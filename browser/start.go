package browser

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/fair"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/relay"
	"github.com/stasisd/stasis/budget"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// blankURL is the address of an empty tab.
const blankURL = "about:blank"

// Starter starts Chromes. Now returns the current time.
type Starter struct {
	Launcher *launch.Launcher
	Now      func() time.Time
	// Budget counts the CDP messages of all Chromes; nil: each Chrome has its own.
	Budget *budget.Budget
	// Policy is the policy of Firewall, or of the launcher's networks. The relays of proxies
	// follow it too.
	Policy egress.Policy
	// Firewall limits what Chromes connect to by their users; nil: only their own networks
	// do, if they have some.
	Firewall Firewall
	// Limits are those of every Chrome.
	Limits Limits
	// Shares divides the processors among the owners of Chromes; nil: nobody does.
	Shares *fair.Users
	// Hosts are the resolvers for names of hosts in sessions' limits; nil: they have none.
	Hosts *Hosts
	// MaxDownloads bounds the bytes of a session's downloads together; 0: no limit.
	MaxDownloads int64

	aliveDeadline time.Duration // a test shortens it

	inspections chan struct{} // one value for each profile that is being inspected

	settings atomic.Pointer[[]byte] // with which gated profiles start; nil: not known
	noGates  atomic.Pointer[error]  // why no Chrome can have gates; nil: no reason is known

	learning   sync.Mutex // held while the settings are being learned
	learnAfter time.Time  // no spare tries before this; guarded by learning
}

// NewStarter returns a Starter with a launcher and a clock.
func NewStarter(launcher *launch.Launcher, now func() time.Time) *Starter {
	s := &Starter{Launcher: launcher, Now: now, aliveDeadline: aliveDeadline, inspections: make(chan struct{}, maxInspections)}
	if _, shares := launcher.Limits(); shares {
		s.Shares = fair.New(runtime.GOMAXPROCS(0), now)
	}
	return s
}

// Fresh starts Chrome on an empty environment, with one blank tab.
func (s *Starter) Fresh(ctx context.Context, dir *Dir, o Options) (*Browser, error) {
	spare, err := s.Spare(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	return spare.Fresh(ctx, o)
}

// Restored starts Chrome and restores the environment that is unpacked in the directory;
// see [Spare.Restored]. The shell starts on the unpacked environment itself, so after a
// failure that copy is lost.
func (s *Starter) Restored(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Browser, []state.Component, error) {
	standby, err := s.load(ctx, dir, doc, o)
	if err != nil {
		return nil, nil, err
	}
	return standby.activateAwake(ctx)
}

func (s *Starter) start(ctx context.Context, dir *Dir, folder string, o Options, gated bool) (*Browser, error) {
	const op = "browser.start"
	appearance, err := s.appearance(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	flags := append(overrideFlags(o.Overrides), appearance.flags(o.Overrides)...)
	var relay *relay.Relay
	if o.Engine == EngineShell { // the shell reads none of it from the profile
		var proxy *profile.Proxy
		if proxy, relay, err = s.startProxy(o.Overrides.Proxy, dir.UID); err == nil {
			err = s.limitEgress(dir, o, relay)
		}
		if err != nil {
			relay.Close()
			s.Hosts.stop(s.limiter(dir))
			return nil, err
		}
		flags = append(append(flags, languageFlags(o.Overrides)...), proxyFlags(proxy)...)
	}
	first := blankURL
	if gated { // with a window at its start, Chrome would wait for the session file
		first, flags = "", append(flags, "--no-startup-window")
	}
	limits := o.Limits.Within(s.Limits)
	process, err := s.Launcher.Start(ctx, launch.Options{
		Dir: dir, Shell: o.Engine == EngineShell, Profile: folder, URL: first,
		TimeZone: o.Overrides.Timezone, ExtraArgs: flags, Hold: gated, Limits: limits.group()})
	if err != nil {
		relay.Close()
		s.Hosts.stop(s.limiter(dir))
		return nil, err
	}
	relay.SetProcesses(process.Processes)
	if o.Background {
		defer background(process)()
	}
	b := &Browser{dir: dir, process: process, usage: newUsage(process, limits, s.Now), now: s.Now, relay: relay, appearance: appearance, guard: new(guard), foreground: new(foreground), starter: s}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.usage.join(b.ctx, s.Shares, o.Owner, process) // so that the start of a user's Chrome yields too
	b.mux = mux.New(process.Pipe(), mux.Options{Policy: mux.Policy{FilesDir: dir.Files(), IncomingDir: dir.Incoming()}, Downloads: dir.Downloads(), MaxDownloads: s.MaxDownloads, Budget: s.Budget, KeepPage: true, NoHiddenTargets: o.Engine == EngineShell})
	if b.driver, err = b.mux.Driver(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	b.tabs = &tabs{driver: b.driver, mux: b.mux, life: b.ctx}
	b.foreground.mux, b.foreground.life = b.mux, b.ctx
	b.guard = &guard{tabs: b.tabs}
	b.guard.start()
	b.mux.Hooks.OnDrop(dropHandler{b.tabs}.ready)
	b.mux.Hooks.OnRegrant(b.resetPermissions)
	b.extensions = &extensionSet{driver: b.driver, mux: b.mux, dir: dir}
	b.setOptions(o)
	v, err := cdp.Call(ctx, b.driver, browser.GetVersion, cdp.Empty{})
	if err != nil {
		return nil, b.abandon(ctx, fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not report its version"))
	}
	_, b.version, _ = strings.Cut(v.Product, "/")
	b.userAgent, b.protocol = v.UserAgent, v.ProtocolVersion
	if gated {
		if _, err := cdp.Call(ctx, b.driver, target.CreateTarget, target.CreateTargetParams{URL: blankURL}); err != nil {
			return nil, b.abandon(ctx, fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not open a window"))
		}
	}
	if err := b.tabs.awaitFirst(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return b, nil
}

// abandon ends a Chrome whose start failed and returns why it failed.
func (b *Browser) abandon(ctx context.Context, why error) error {
	if err := b.Kill(context.WithoutCancel(ctx)); err != nil {
		return fault.Wrap(err, fault.BrowserFailed, "browser.start", "Chrome did not start and could not be ended")
	}
	return why
}
