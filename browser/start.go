package browser

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/stasisd/stasis/browser/datadir"
	"github.com/stasisd/stasis/browser/inventory"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/sift"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// spareProfile is the profile that Chrome starts with when an environment is
// brought in beside it; it is gone once the environment is there.
const spareProfile = "Spare"

// Starter starts Chromes. Now is the clock.
type Starter struct {
	Launcher *launch.Launcher
	Now      func() time.Time

	inspections chan struct{} // one for each profile that is being inspected
}

// NewStarter makes a Starter of a launcher and a clock.
func NewStarter(launcher *launch.Launcher, now func() time.Time) *Starter {
	return &Starter{Launcher: launcher, Now: now, inspections: make(chan struct{}, maxInspections)}
}

// Fresh starts Chrome on an empty environment, with one blank tab.
func (s *Starter) Fresh(ctx context.Context, dir *Dir, o Options) (*Browser, error) {
	if o.Engine == EngineShell {
		return s.freshShell(ctx, dir, o)
	}
	unknown, err := s.prepare(ctx, dir, state.Document{}, o, datadir.Prepare{RestoreTabs: true, Policy: o.Overrides.Permissions()})
	if err != nil {
		return nil, err
	}
	b, err := s.start(ctx, dir, datadir.Profile, o)
	if err != nil {
		return nil, err
	}
	refused, err := b.loadExtensions(ctx, state.Document{}, unknown)
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	for _, e := range o.Extensions {
		if why := refused[e.ID]; why != "" {
			return nil, b.abandon(ctx, fault.New(fault.InvalidExtension, "browser.start", "extension %s (%s): %s", e.ID, e.Name, why))
		}
	}
	b.givePasskeys(state.Passkeys{})
	if err := b.keepDownloads(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	if err := b.attend(ctx, b.setups()...); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return b, nil
}

// Restored starts Chrome and brings the environment in that lies in the
// directory's profile, with the state document of its archive.
//
// An empty Chrome starts first and the profile is brought in beside it, so
// that the daemon is attached to every tab before its first request. A profile
// that a newer Chrome (by major version) wrote is not used: an older one runs on
// it and loses data without a word. Then the document is laid on an empty
// profile; where there is none to speak of, the error is unsupported.
func (s *Starter) Restored(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Browser, []state.Component, error) {
	own := o.Overrides
	o.Overrides = own.Over(doc.Overrides)
	if o.Engine == EngineShell {
		b, report, err := s.restoredShell(ctx, dir, doc, o)
		if err != nil {
			return nil, nil, err
		}
		report = append(report, state.OverrideLines(doc.Overrides, own)...)
		return b, append(report, b.passkeyLines(doc.Passkeys)...), nil
	}
	// Before they are prepared for this session.
	settings, err := inventory.Settings(ctx, filepath.Join(dir.Profile(), datadir.Profile))
	if err != nil {
		return nil, nil, err
	}
	if err := datadir.ResetBroken(dir.Profile()); err != nil {
		return nil, nil, err
	}
	tabs := tabsOf(doc, o)
	keep := o.RestoreTabs && !doc.TabsByURL && (tabs != tabsNone || doc.Datadir == state.DatadirClean)
	unknown, err := s.prepare(ctx, dir, doc, o, datadir.Prepare{RestoreTabs: keep, StaleSessionStorage: tabs == tabsStale,
		Policy: o.Overrides.Permissions(), Before: doc.Overrides.Permissions()})
	if err != nil {
		return nil, nil, err
	}
	// The profile is read while the empty Chrome comes up, which leaves it alone.
	inspected := s.inspecting(ctx, dir, doc, settings, s.Now())
	b, err := s.start(ctx, dir, spareProfile, o)
	salvaged := <-inspected
	if err != nil {
		return nil, nil, err
	}
	if salvaged.err != nil {
		return nil, nil, b.abandon(ctx, salvaged.err)
	}
	b.salvage = salvaged.salvage
	if doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, b.version) {
		if doc, unknown, err = s.setAside(ctx, dir, doc, o); err != nil {
			return nil, nil, b.abandon(ctx, err)
		}
		b.salvage = salvage{}
		if err := b.salvage.layLocal(ctx, dir, doc.Local, s.Now()); err != nil {
			return nil, nil, b.abandon(ctx, err)
		}
	}
	b.givePasskeys(doc.Passkeys)
	if err := b.attend(ctx, b.setups()...); err != nil {
		return nil, nil, b.abandon(ctx, err)
	}
	report, err := b.bringIn(ctx, doc, o, unknown)
	if err != nil {
		return nil, nil, b.abandon(ctx, err)
	}
	report = append(report, state.OverrideLines(doc.Overrides, own)...)
	return b, append(report, b.passkeyLines(doc.Passkeys)...), nil
}

// prepare readies the profile and returns the extensions that it does not know.
func (s *Starter) prepare(ctx context.Context, dir *Dir, doc state.Document, o Options, p datadir.Prepare) (unknown []string, err error) {
	p.Extensions = placed(dir, doc, o.Extensions)
	if err := sift.PutBack(ctx, filepath.Join(dir.Profile(), datadir.Profile)); err != nil {
		return nil, err
	}
	if unknown, err = p.Run(dir.Profile()); err != nil {
		return nil, err
	}
	return unknown, dir.Own()
}

func (s *Starter) start(ctx context.Context, dir *Dir, profile string, o Options) (*Browser, error) {
	const op = "browser.start"
	face, err := s.face(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	proxy, relay, err := startProxy(o.Overrides.Proxy, dir.UID)
	if err != nil {
		return nil, err
	}
	process, err := s.Launcher.Start(ctx, launch.Options{
		Dir: dir, Shell: o.Engine == EngineShell, Profile: profile, URL: "about:blank",
		TimeZone: o.Overrides.Timezone, ExtraArgs: slices.Concat(overrideFlags(o.Overrides), face.flags(o.Overrides), proxy)})
	if err != nil {
		relay.Close()
		return nil, err
	}
	b := &Browser{dir: dir, process: process, now: s.Now, options: o, relay: relay, face: face}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.mux = mux.New(process.Pipe(), mux.Options{Policy: mux.Policy{FilesDir: dir.Files()}, KeepPage: true, HidesNone: o.Engine == EngineShell})
	if b.driver, err = b.mux.Driver(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	v, err := cdp.Call(ctx, b.driver, browser.GetVersion, cdp.Empty{})
	if err != nil {
		return nil, b.abandon(ctx, fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not answer"))
	}
	_, b.version, _ = strings.Cut(v.Product, "/")
	b.userAgent, b.protocol = v.UserAgent, v.ProtocolVersion
	if err := b.awaitTab(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return b, nil
}

// abandon ends a Chrome that did not come up and returns why it did not.
func (b *Browser) abandon(ctx context.Context, why error) error {
	if err := b.Kill(context.WithoutCancel(ctx)); err != nil {
		return fault.Wrap(err, fault.BrowserFailed, "browser.start", "Chrome did not start and could not be ended")
	}
	return why
}
