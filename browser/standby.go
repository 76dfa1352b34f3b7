package browser

import (
	"context"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Standby is a live Chrome with an environment loaded. Its tabs are paused and have sent
// no request. Every restore passes through this state. A standby that was started in
// advance saves its restore all the time until here. It becomes a session's Chrome once.
type Standby struct {
	b      *Browser
	doc    state.Document
	own    state.Overrides // overrides of the create; the saved ones apply where these set none
	report []state.Component

	// Only in full Chrome. The shell opens its tabs in Activate.
	held  *restore.Tabs
	tabs  restore.Source
	blank []*target.Info // the spare's own tabs
}

// Standby starts Chrome and restores the environment that is unpacked in the directory,
// without its tabs; see [Spare.Restored]. Then it freezes Chrome. A standby may wait for
// any time.
func (s *Starter) Standby(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Standby, error) {
	o.Gates = true
	p, err := s.load(ctx, dir, doc, o)
	if err != nil {
		return nil, err
	}
	err = p.b.tabs.closeLeftover(ctx)
	if err == nil {
		// Chrome draws paused tabs as loading. Without a freeze that takes a tenth of a
		// core.
		err = p.b.Freeze(ctx)
	}
	if err != nil {
		return nil, p.abandon(ctx, err)
	}
	return p, nil
}

// load starts Chrome and loads the environment.
func (s *Starter) load(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Standby, error) {
	if err := profile.UseDefaultFolder(dir.Profile()); err != nil {
		return nil, err
	}
	if o.Engine == EngineShell {
		return s.loadShell(ctx, dir, doc, o)
	}
	spare, err := s.Spare(ctx, dir, Options{Overrides: StartOverrides(o.Engine, o.Overrides.WithDefaults(doc.Overrides)), Gates: o.Gates, Background: o.Background})
	if err != nil {
		return nil, err
	}
	return spare.load(ctx, doc, o)
}

// Dir returns its run directory.
func (s *Standby) Dir() *Dir { return s.b.dir }

// Done is closed when Chrome is no longer usable; see [Browser.Done].
func (s *Standby) Done() <-chan struct{} { return s.b.Done() }

// Kill ends it and waits; see [Browser.Kill].
func (s *Standby) Kill(ctx context.Context) error {
	s.stopTabs()
	return s.b.Kill(ctx)
}

// Activate turns the standby into a session's Chrome: its tabs load. It reports what was
// restored, as of now. After an error the standby has ended.
func (s *Standby) Activate(ctx context.Context) (*Browser, []state.Component, error) {
	waking, cancel := context.WithTimeout(ctx, s.b.starter.aliveDeadline)
	defer cancel()
	if err := s.b.Wake(waking); err != nil {
		return nil, nil, s.abandon(ctx, err)
	}
	return s.activateAwake(ctx)
}

// activateAwake is Activate for a Chrome that is awake and has just answered.
func (s *Standby) activateAwake(ctx context.Context) (*Browser, []state.Component, error) {
	b := s.b
	release := s.release
	if b.shell() {
		release = s.openTabs
	}
	if err := release(ctx); err != nil {
		return nil, nil, s.abandon(ctx, err)
	}
	report := state.ExpiredIn(s.report, b.baseline.Jar, b.now())
	report = append(report, state.OverrideLines(s.doc.Overrides, s.own)...)
	return b, append(report, b.passkeys.lines(s.doc.Passkeys)...), nil
}

// openTabs is release in the shell, where no tabs are paused.
func (s *Standby) openTabs(ctx context.Context) error {
	b := s.b
	lines, ids, err := b.environment().OpenTabs(ctx, s.doc, b.options.RestoreTabs, b.background.Go)
	for i, id := range ids {
		if s.doc.Tabs[i].Active {
			b.driver.NoteFront(id) // the shell shows all tabs
		}
	}
	s.report = append(s.report, lines...)
	return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the tabs could not be opened")
}

// abandon ends the standby and returns why.
func (s *Standby) abandon(ctx context.Context, why error) error {
	s.stopTabs()
	return s.b.abandon(ctx, why)
}

// stopTabs stops the handling of the tabs, which end with their Chrome.
func (s *Standby) stopTabs() {
	if s.held != nil {
		s.held.Stop()
	}
}
