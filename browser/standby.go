package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Standby is a live Chrome with an environment loaded, all but its tabs:
// those wait, not one request sent. Every restore is one for a moment; one that
// was brought up ahead of need saves its restore all of that. It becomes a
// session's once.
type Standby struct {
	b      *Browser
	doc    state.Document
	own    state.Overrides // that were asked for; the saved ones apply besides
	report []state.Component

	// Of full Chrome; the shell opens its tabs when it goes.
	held *restore.Tabs
	tabs restore.Source
}

// Standby starts Chrome and restores the environment that lies in the
// directory, to wait there; see [Spare.Restored]. The time that it waits is not
// bounded.
func (s *Starter) Standby(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Standby, error) {
	p, err := s.load(ctx, dir, doc, o)
	if err != nil {
		return nil, err
	}
	err = p.b.tabs.alone(ctx)
	if err == nil {
		// Tabs that wait are shown as loading: unfrozen, a tenth of a core draws that.
		err = p.b.Freeze(ctx)
	}
	if err != nil {
		return nil, p.abandon(ctx, err)
	}
	return p, nil
}

// load starts Chrome and loads the environment in.
func (s *Starter) load(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Standby, error) {
	if err := profile.Settle(dir.Profile()); err != nil {
		return nil, err
	}
	if o.Engine == EngineShell {
		return s.loadShell(ctx, dir, doc, o)
	}
	spare, err := s.Spare(ctx, dir, Options{Overrides: AtStart(o.Engine, o.Overrides.Over(doc.Overrides)), Background: o.Background})
	if err != nil {
		return nil, err
	}
	return spare.load(ctx, doc, o)
}

// Dir is where it lives on disk.
func (s *Standby) Dir() *Dir { return s.b.dir }

// Done is closed when its process tree has gone.
func (s *Standby) Done() <-chan struct{} { return s.b.Done() }

// Kill ends it, and waits; see [Browser.Kill].
func (s *Standby) Kill(ctx context.Context) error {
	s.dismiss()
	return s.b.Kill(ctx)
}

// Go makes a session's Chrome of it: the tabs load. It reports what came back,
// as of now. After an error it has ended.
func (s *Standby) Go(ctx context.Context) (*Browser, []state.Component, error) {
	waking, cancel := context.WithTimeout(ctx, aliveDeadline)
	defer cancel()
	if err := s.b.Wake(waking); err != nil {
		return nil, nil, s.abandon(ctx, err)
	}
	return s.goOn(ctx)
}

// goOn is Go for a Chrome that has answered just now.
func (s *Standby) goOn(ctx context.Context) (*Browser, []state.Component, error) {
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

// openTabs is release in the shell, where no tabs are held.
func (s *Standby) openTabs(ctx context.Context) error {
	b := s.b
	lines, ids, err := b.environment().OpenTabs(ctx, s.doc, b.options.RestoreTabs, b.background.Go)
	for i, id := range ids {
		b.ahead.restored(id, s.doc.Tabs[i].Active)
	}
	s.report = append(s.report, lines...)
	return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the tabs could not be opened")
}

// abandon ends it and returns why.
func (s *Standby) abandon(ctx context.Context, why error) error {
	s.dismiss()
	return s.b.abandon(ctx, why)
}

// dismiss takes no more notice of the tabs, which go with their Chrome.
func (s *Standby) dismiss() {
	if s.held != nil {
		s.held.Stop()
	}
}
