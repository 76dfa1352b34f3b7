package browser

import (
	"context"
	"reflect"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// aliveDeadline bounds how long a spare may take to answer, which is a matter of
// milliseconds: one that hangs is given up.
const aliveDeadline = 2 * time.Second

// Spare is a live, empty Chrome with one blank tab. Every Chrome is one first;
// then it becomes a session's, once: as it is, or with an environment
// loaded. Started ahead of need it saves most of the time that a restore takes.
type Spare struct {
	starter *Starter
	b       *Browser
	made    Options // what it was started for
	// unknown are the IDs of the extensions that it was started for and that
	// Chrome does not load by itself.
	unknown []string
}

// Spare starts an empty Chrome. The options say what it is going to be asked for,
// as far as that is known; the zero value is asked for most.
func (s *Starter) Spare(ctx context.Context, dir *Dir, o Options) (*Spare, error) {
	if o.Engine == EngineShell {
		return s.spareShell(ctx, dir, o)
	}
	proxy, relay, err := startProxy(o.Overrides.Proxy, dir.UID)
	if err != nil {
		return nil, err
	}
	empty := preparation(dir, state.Document{}, o, proxy)
	empty.Folder, empty.Empty, empty.RestoreTabs = profile.Spare, true, true
	unknown, err := empty.Run(ctx, dir.Profile())
	if err == nil {
		err = dir.Own()
	}
	var b *Browser
	if err == nil {
		b, err = s.start(ctx, dir, profile.Spare, o)
	}
	if err != nil {
		relay.Close()
		return nil, err
	}
	b.relay = relay
	relay.Serves(b.process.Processes)
	if err := keepDownloads(ctx, b.driver, dir); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return &Spare{starter: s, b: b, made: o, unknown: unknown}, nil
}

// Landing is where an environment is unpacked that is to be loaded into an empty
// Chrome of an engine that runs in a run directory, or is going to.
func Landing(dir *Dir, engine string) *Dir {
	if engine == EngineShell {
		return dir.Waiting()
	}
	return dir
}

// Dir is where it lives on disk.
func (p *Spare) Dir() *Dir { return p.b.dir }

// Done is closed when its process tree has gone.
func (p *Spare) Done() <-chan struct{} { return p.b.Done() }

// Kill ends it, and waits; see [Browser.Kill].
func (p *Spare) Kill(ctx context.Context) error { return p.b.Kill(ctx) }

// AtStart are those of the overrides that an engine takes when it starts, and holds
// to in every process from then on. The shell reads none in a profile.
func AtStart(engine string, o state.Overrides) state.Overrides {
	if engine == EngineShell {
		return state.Overrides{UserAgent: o.UserAgent, Timezone: o.Timezone, Locale: o.Locale, Proxy: o.Proxy}
	}
	return state.Overrides{UserAgent: o.UserAgent, Timezone: o.Timezone}
}

// suits reports whether an empty environment with these options is what it has
// already.
func (p *Spare) suits(o Options) bool {
	is, made := o.Overrides, p.made.Overrides
	return is.Locale == made.Locale && reflect.DeepEqual(other(is.Proxy), other(made.Proxy)) &&
		reflect.DeepEqual(is.Permissions(), made.Permissions()) &&
		len(o.Extensions) == len(p.made.Extensions) && (len(o.Extensions) == 0 || reflect.DeepEqual(o.Extensions, p.made.Extensions))
}

// Fresh makes an empty environment of it. What a profile must say before Chrome
// reads it is loaded with an empty one. An extension that Chrome refuses is
// invalid_extension. After an error it has ended.
func (p *Spare) Fresh(ctx context.Context, o Options) (*Browser, error) {
	if p.b.shell() {
		return p.freshShell(ctx, o)
	}
	if !p.suits(o) {
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
	b.takeOptions(o)
	if err := alive(ctx, b.driver); err != nil {
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
	b.passkeys = givePasskeys(state.Passkeys{}, b.options.Passkeys, b.mux, b.driver, b.process.Frozen)
	if err := b.initialiseTargets(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return b, nil
}

// refusedExtension is the error of an extension that a fresh environment was to
// have and does not.
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

// Restored restores the environment that lies in its directory (see [Landing]),
// with the state document of its archive.
//
// The profile is loaded beside the empty one, so that the daemon is attached
// to every tab before its first request. A profile that a newer Chrome (by major
// version) wrote is not used: an older one runs on it and loses data without a
// word. Then the document is applied to an empty profile; where there is none to
// speak of, the error is unsupported. After an error it has ended.
func (p *Spare) Restored(ctx context.Context, doc state.Document, o Options) (*Browser, []state.Component, error) {
	s, err := p.load(ctx, doc, o)
	if err != nil {
		return nil, nil, err
	}
	return s.goOn(ctx)
}

// load is Restored but for the tabs, which wait.
func (p *Spare) load(ctx context.Context, doc state.Document, o Options) (*Standby, error) {
	if p.b.shell() {
		return p.loadShell(ctx, doc, o)
	}
	b := p.b
	if o.Background {
		b.process.Background(true)
		defer b.process.Background(false)
	}
	own := o.Overrides
	o.Overrides = own.Over(doc.Overrides)
	b.takeOptions(o)
	answered := make(chan error, 1)
	go func() { answered <- alive(ctx, b.driver) }()
	unknown, proxy, err := p.ready(ctx, doc, o)
	if gone := <-answered; gone != nil {
		err = gone
	}
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	if doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, b.version) {
		if doc, unknown, b.baseline, err = setAside(ctx, b.dir, doc, o, proxy, b.now()); err != nil {
			return nil, b.abandon(ctx, err)
		}
	}
	b.passkeys = givePasskeys(doc.Passkeys, b.options.Passkeys, b.mux, b.driver, b.process.Frozen)
	if err := b.initialiseTargets(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	s := &Standby{b: b, doc: doc, own: own}
	if err := s.load(ctx, o, unknown); err != nil {
		return nil, s.abandon(ctx, err)
	}
	return s, nil
}

// ready inspects the profile and prepares it for Chrome. It returns the
// extensions that the profile does not know, and the proxy that it was told.
func (p *Spare) ready(ctx context.Context, doc state.Document, o Options) (unknown []string, proxy *profile.Proxy, err error) {
	dir := p.b.dir
	p.b.relay.Close() // of the empty profile
	if proxy, p.b.relay, err = startProxy(o.Overrides.Proxy, dir.UID); err != nil {
		return nil, nil, err
	}
	p.b.relay.Serves(p.b.process.Processes)
	tabs, prep := restore.SourceOf(doc, o.RestoreTabs), preparation(dir, doc, o, proxy)
	prep.RestoreTabs = o.RestoreTabs && !doc.TabsByURL && (tabs != restore.SourceNone || doc.Datadir == state.DatadirClean)
	prep.StaleSessionStorage = tabs == restore.SourceDocument
	prep.Before = doc.Overrides.Permissions()
	if unknown, p.b.baseline, err = p.starter.prepare(ctx, dir, doc, prep); err != nil {
		return nil, nil, err
	}
	return unknown, proxy, dir.OwnProfile(profile.Default, profile.Extensions)
}

// preparation is what every profile of these options must say.
func preparation(dir *Dir, doc state.Document, o Options, proxy *profile.Proxy) profile.Prepare {
	return profile.Prepare{Policy: o.Overrides.Permissions(), Languages: acceptLanguages(o.Overrides.Locale), Proxy: proxy,
		Extensions: placed(dir, doc, o.Extensions)}
}

// alive returns nil once Chrome has answered.
func alive(ctx context.Context, driver *mux.Driver) error {
	ctx, cancel := context.WithTimeout(ctx, aliveDeadline)
	defer cancel()
	_, err := cdp.Call(ctx, driver, browser.GetVersion, cdp.Empty{})
	return fault.Wrap(err, fault.BrowserFailed, "browser.alive", "the Chrome that was kept ready did not answer")
}
