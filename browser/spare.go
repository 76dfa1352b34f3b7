package browser

import (
	"context"
	"reflect"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// aliveDeadline bounds how long a spare may take to answer. It takes milliseconds, and more on
// a busy machine; a spare that hangs is given up.
const aliveDeadline = 10 * time.Second

// Spare is a live, empty Chrome with one blank tab. Every Chrome starts as one. It
// becomes a session's Chrome once, either unchanged or with an environment loaded.
// Starting it in advance saves most of a restore's time.
type Spare struct {
	starter      *Starter
	b            *Browser
	startOptions Options // the options that it was started with
	// unknown are the IDs of its extensions that Chrome does not load on its own.
	unknown []string
	// gated: full Chrome waits at the gates of its empty profile.
	gated bool
}

// Spare starts an empty Chrome. o are the options that the session is expected to have.
// The zero value fits most sessions.
func (s *Starter) Spare(ctx context.Context, dir *Dir, o Options) (*Spare, error) {
	if o.Engine == EngineShell {
		return s.spareShell(ctx, dir, o)
	}
	if o.Background && o.Gates {
		s.learnSettings(ctx)
	}
	proxy, relay, err := s.startProxy(o.Overrides.Proxy, dir.UID)
	if err == nil {
		err = s.limitEgress(dir, o, relay)
	}
	if err != nil {
		relay.Close()
		s.Hosts.stop(s.limiter(dir))
		return nil, err
	}
	empty := preparation(dir, state.Document{}, o, proxy)
	empty.Folder, empty.Empty, empty.RestoreTabs = profile.Spare, true, true
	var unknown []string
	settings := s.gates(o)
	gated := settings != nil
	if gated {
		unknown, err = prepareGated(ctx, dir, empty, *settings)
	} else {
		unknown, err = empty.Run(ctx, dir.Profile())
	}
	if err == nil {
		err = dir.Chown()
	}
	var b *Browser
	if err == nil {
		b, err = s.start(ctx, dir, profile.Spare, o, gated)
	}
	if gated && fault.Is(err, fault.Unsupported) {
		relay.Close()
		s.disableGates(err)
		return s.Spare(ctx, dir, o)
	}
	if err != nil {
		relay.Close()
		s.Hosts.stop(s.limiter(dir))
		return nil, err
	}
	b.relay = relay
	relay.SetProcesses(b.process.Processes)
	if err := keepDownloads(ctx, b.driver, dir); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return &Spare{starter: s, b: b, startOptions: o, unknown: unknown, gated: gated}, nil
}

// UnpackDir returns where to unpack an environment that will be loaded into the empty
// Chrome of run directory dir, running or not yet started.
func UnpackDir(dir *Dir, engine string) *Dir {
	if engine == EngineShell {
		return dir.Waiting()
	}
	return dir
}

// Dir returns its run directory.
func (p *Spare) Dir() *Dir { return p.b.dir }

// Done is closed when Chrome is no longer usable; see [Browser.Done].
func (p *Spare) Done() <-chan struct{} { return p.b.Done() }

// Kill ends it and waits; see [Browser.Kill].
func (p *Spare) Kill(ctx context.Context) error { return p.b.Kill(ctx) }

// StartOverrides returns the overrides that an engine takes at its start and keeps for
// all its processes. The shell reads no overrides from a profile.
func StartOverrides(engine string, o state.Overrides) state.Overrides {
	if engine == EngineShell {
		return state.Overrides{UserAgent: o.UserAgent, Timezone: o.Timezone, Locale: o.Locale, Proxy: o.Proxy}
	}
	return state.Overrides{UserAgent: o.UserAgent, Timezone: o.Timezone}
}

// fits reports whether an empty environment with these options needs no change of the
// spare.
func (p *Spare) fits(o Options) bool {
	is, made := o.Overrides, p.startOptions.Overrides
	return is.Locale == made.Locale && reflect.DeepEqual(nilIfDirect(is.Proxy), nilIfDirect(made.Proxy)) &&
		reflect.DeepEqual(is.Permissions(), made.Permissions()) &&
		len(o.Extensions) == len(p.startOptions.Extensions) && (len(o.Extensions) == 0 || reflect.DeepEqual(o.Extensions, p.startOptions.Extensions))
}

// Fresh turns the spare into a session's Chrome with an empty environment. If the options
// need other preferences, it loads an empty profile with them. An extension that Chrome
// refuses is invalid_extension. After an error the spare has ended.
func (p *Spare) Fresh(ctx context.Context, o Options) (*Browser, error) {
	if p.b.shell() {
		return p.freshShell(ctx, o)
	}
	if !p.fits(o) {
		b, report, err := p.Restored(ctx, state.Document{Complete: true, Datadir: state.DatadirNone}, o)
		if err == nil {
			err = refusedExtension(report, o)
		}
		if err != nil {
			return nil, p.b.abandon(ctx, err)
		}
		return b, nil
	}
	b := p.b
	b.setOptions(o)
	if err := limit(b, o); err != nil {
		return nil, b.abandon(ctx, err)
	}
	if err := p.openEmpty(); err != nil {
		return nil, b.abandon(ctx, err)
	}
	if err := alive(ctx, b); err != nil {
		return nil, b.abandon(ctx, err)
	}
	refused, err := b.extensions.load(ctx, state.Document{}, p.unknown)
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	report, err := b.extensions.report(ctx, state.Document{}, refused)
	if err == nil {
		err = refusedExtension(report, o)
	}
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	b.passkeys = newPasskeys(state.Passkeys{}, b.options.Passkeys, b.mux, b.driver, b.process.Frozen)
	if err := b.initialiseTargets(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return b, nil
}

// refusedExtension returns an error if a fresh environment lacks one of its extensions.
func refusedExtension(report []state.Component, o Options) error {
	for _, line := range report {
		for _, e := range o.Extensions {
			if line.Name == state.ComponentExtensions && line.Origin == e.Origin() && line.Restored == 0 {
				return fault.New(fault.InvalidExtension, "browser.start", "extension %s (%s): %s", e.ID, e.Name, line.Reason.Text)
			}
		}
	}
	return nil
}

// Restored restores the environment that is unpacked in the spare's directory (see
// [UnpackDir]), with the state document of its archive.
//
// The files are moved into the empty profile if it has gates; otherwise Chrome opens a second
// profile. In both cases the daemon is attached to every tab before its first request. A
// profile that a newer Chrome (by major version) wrote is not used: an older Chrome opens it
// and loses data silently. The document is then applied to an empty profile. If the document
// is not complete, the error is unsupported. After an error the spare has ended.
func (p *Spare) Restored(ctx context.Context, doc state.Document, o Options) (*Browser, []state.Component, error) {
	s, err := p.load(ctx, doc, o)
	if err != nil {
		return nil, nil, err
	}
	return s.activateAwake(ctx)
}

// load is Restored without the tabs, which stay paused.
func (p *Spare) load(ctx context.Context, doc state.Document, o Options) (*Standby, error) {
	if p.b.shell() {
		return p.loadShell(ctx, doc, o)
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	b := p.b
	if o.Background {
		defer background(b.process)()
	}
	own := o.Overrides
	o.Overrides = own.WithDefaults(doc.Overrides)
	b.setOptions(o)
	b.passkeys = newPasskeys(doc.Passkeys, b.options.Passkeys, b.mux, b.driver, b.process.Frozen)
	s := &Standby{b: b, own: own}
	held := make(chan error, 1)
	go func() { held <- s.hold(ctx) }() // while the profile is read
	ready, err := p.ready(ctx, whole, doc, o)
	if failed := <-held; err == nil {
		err = failed
	}
	enter := ready.enter
	if err == nil && enter == nil {
		err = p.openEmpty()
	}
	if err != nil {
		return nil, s.abandon(ctx, err)
	}
	if doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, b.version) {
		if doc, ready.unknown, b.baseline, err = setAside(ctx, b.dir, doc, o, ready.proxy, b.now()); err != nil {
			return nil, s.abandon(ctx, err)
		}
	}
	s.doc, s.tabs = doc, restore.SourceOf(doc, o.RestoreTabs)
	if err := s.load(ctx, enter, ready.unknown); err != nil {
		return nil, s.abandon(ctx, err)
	}
	return s, nil
}

// readyProfile is an environment's profile that is ready for Chrome.
type readyProfile struct {
	unknown []string                     // the IDs of the extensions that it does not know
	proxy   *profile.Proxy               // its proxy setting
	enter   func() (tabs int, err error) // moves its files into the spare's; nil: Chrome opens it as another one
}

// ready prepares the profile, decides how it gets into Chrome, and inspects it. whole is the
// caller's context: it bounds how long the tail may take, which depends on its size.
func (p *Spare) ready(ctx, whole context.Context, doc state.Document, o Options) (r readyProfile, err error) {
	b, dir := p.b, p.b.dir
	b.relay.Close() // that of the empty profile
	if r.proxy, b.relay, err = p.starter.startProxy(o.Overrides.Proxy, dir.UID); err != nil {
		return r, err
	}
	if err := p.starter.limitEgress(dir, o, b.relay); err != nil {
		return r, err
	}
	if err := b.SetLimits(o.Limits); err != nil {
		return r, err
	}
	b.relay.SetProcesses(b.process.Processes)
	tabs, prep := restore.SourceOf(doc, o.RestoreTabs), preparation(dir, doc, o, r.proxy)
	prep.RestoreTabs = o.RestoreTabs && !doc.TabsByURL && (tabs != restore.SourceNone || doc.Datadir == state.DatadirClean)
	prep.StaleSessionStorage = tabs == restore.SourceDocument
	prep.Before = doc.Overrides.Permissions()
	var settings state.Inventory
	if r.unknown, settings, err = prepare(ctx, dir, prep); err != nil {
		return r, err
	}
	if b.secondProfileReason, err = p.needsProfile(doc, o, settings); err != nil {
		return r, err
	}
	if p.gated && b.secondProfileReason == "" {
		r.enter = p.enterGates
	}
	return r, b.inspectProfile(whole, p.starter, doc, settings, o.Tail, r.enter != nil)
}

// inspectProfile inspects the prepared profile and gives it to Chrome's user. Caches that are
// still being unpacked follow later if they can. Otherwise they are awaited. enters says that
// the profile enters the spare's.
func (b *Browser) inspectProfile(ctx context.Context, s *Starter, doc state.Document, settings state.Inventory, tail Tail, enters bool) (err error) {
	var counted state.Inventory
	follow := tail != nil && enters && cachesCanFollow(b.dir, doc)
	switch {
	case follow:
		counted = doc.Inventory
	case tail != nil:
		if err := b.completeProfile(ctx, tail); err != nil {
			return err
		}
	}
	if b.baseline, err = s.inspect(ctx, b.dir, doc, settings, counted); err != nil {
		return err
	}
	if follow {
		if err := b.holdCaches(tail); err != nil {
			return err
		}
	}
	return b.dir.ChownProfile(profile.Default, profile.Extensions)
}

// preparation returns the settings that a profile needs for these options.
func preparation(dir *Dir, doc state.Document, o Options, proxy *profile.Proxy) profile.Prepare {
	return profile.Prepare{Policy: o.Overrides.Permissions(), Languages: acceptLanguages(o.Overrides.Locale), Proxy: proxy,
		Extensions: extensionPaths(dir, doc, o.Extensions)}
}

// alive returns nil once Chrome has answered.
func alive(ctx context.Context, b *Browser) error {
	ctx, cancel := context.WithTimeout(ctx, b.starter.aliveDeadline)
	defer cancel()
	_, err := cdp.Call(ctx, b.driver, browser.GetVersion, cdp.Empty{})
	return fault.Wrap(err, fault.BrowserFailed, "browser.alive", "the spare Chrome did not answer")
}
