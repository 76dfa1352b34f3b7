package browser

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/filter"
	"github.com/stasisd/stasis/browser/profile/gate"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// The headless shell reads and writes the same profile as full Chrome and knows
// fewer of its files; those that it does not know it leaves alone (measured with
// 156: Preferences, Local State, History, Login Data, Sessions). It has one
// profile, that can be put in place after it has started (package gate), and opens
// no tab of the profile's by itself: nothing of the environment runs until its
// tabs are opened over CDP, so there is nothing to hold.

// spareShell starts an empty shell, that waits for its profile.
func (s *Starter) spareShell(ctx context.Context, dir *Dir, o Options) (*Spare, error) {
	if err := gate.Lay(profile.Path(dir.Profile())); err != nil {
		return nil, err
	}
	if err := dir.OwnProfile(profile.Default); err != nil {
		return nil, err
	}
	b, err := s.start(ctx, dir, profile.Default, o)
	if err != nil {
		return nil, err
	}
	if err := keepDownloads(ctx, b.driver, dir); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return &Spare{starter: s, b: b, made: o}, nil
}

// freshShell is [Spare.Fresh] in the shell.
func (p *Spare) freshShell(ctx context.Context, o Options) (*Browser, error) {
	b := p.b
	b.takeOptions(o)
	err := enter(b.dir)
	if err == nil {
		err = alive(ctx, b.driver)
	}
	if err == nil {
		b.passkeys = givePasskeys(state.Passkeys{}, b.options.Passkeys, b.mux, b.driver, b.process.Frozen)
		setShellPolicy(ctx, b.driver, b.options.Overrides.Permissions())
		err = b.initialiseTargets(ctx)
	}
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	return b, nil
}

// enter lets the shell that runs in a run directory have the profile that waits for it.
func enter(dir *Dir) error {
	waiting := dir.Waiting()
	folder := profile.Path(waiting.Profile())
	if err := gate.Fill(folder); err != nil {
		return err
	}
	if err := waiting.Own(); err != nil {
		return err
	}
	if err := gate.Open(profile.Path(dir.Profile()), folder); err != nil {
		return err
	}
	extensions := filepath.Join(waiting.Profile(), profile.Extensions)
	if _, err := os.Lstat(extensions); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := os.Rename(extensions, filepath.Join(dir.Profile(), profile.Extensions))
	return fault.Wrap(err, fault.BrowserFailed, "browser.enter", "the extensions of the environment could not be kept")
}

// loadShell is [Spare.load] in the shell.
func (p *Spare) loadShell(ctx context.Context, doc state.Document, o Options) (*Standby, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	b, own := p.b, o.Overrides
	o.Overrides = own.Over(doc.Overrides)
	b.takeOptions(o)
	answered := make(chan error, 1)
	go func() { answered <- alive(ctx, b.driver) }()
	base, doc, err := p.starter.prepareShell(ctx, b.dir.Waiting(), doc, o, b.version)
	if gone := <-answered; gone != nil {
		err = gone
	}
	if err == nil {
		err = enter(b.dir)
	}
	var report []state.Component
	if err == nil {
		b.baseline = base
		report, err = b.applyShell(ctx, doc)
	}
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	return &Standby{b: b, doc: doc, own: own, report: report}, nil
}

// loadShell is [Starter.load] in the shell, which starts on the profile.
func (s *Starter) loadShell(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Standby, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	own := o.Overrides
	o.Overrides = own.Over(doc.Overrides)
	v, err := s.Launcher.Version(ctx, dir, true)
	if err != nil {
		return nil, err
	}
	base, doc, err := s.prepareShell(ctx, dir, doc, o, v.Full)
	if err == nil {
		err = dir.Own()
	}
	if err != nil {
		return nil, err
	}
	b, err := s.start(ctx, dir, profile.Default, o)
	if err != nil {
		return nil, err
	}
	b.baseline = base
	var report []state.Component
	if err = keepDownloads(ctx, b.driver, dir); err == nil {
		report, err = b.applyShell(ctx, doc)
	}
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	return &Standby{b: b, doc: doc, own: own, report: report}, nil
}

// prepareShell readies a profile for the shell of a version, which has not opened
// it. One that a newer Chrome wrote is put aside, as [Spare.Restored] says.
func (s *Starter) prepareShell(ctx context.Context, dir *Dir, doc state.Document, o Options, version string) (baseline.Baseline, state.Document, error) {
	if doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, version) {
		doc, _, base, err := setAside(ctx, dir, doc, o, nil, s.Now())
		return base, doc, err
	}
	// The preferences are for the full Chrome that may come next. Its session
	// files stay: the document says that they are old. What the profile has of
	// sessionStorage belongs to tabs that do not come back by themselves.
	prep := preparation(dir, doc, o, nil)
	prep.RestoreTabs, prep.StaleSessionStorage, prep.Before = true, doc.Complete, doc.Overrides.Permissions()
	_, found, err := s.prepare(ctx, dir, doc, prep)
	if err != nil {
		return baseline.Baseline{}, doc, err
	}
	return found, doc, filter.SetAside(ctx, filepath.Join(dir.Profile(), profile.Default))
}

// applyShell applies what the profile lacks, before there are tabs.
func (b *Browser) applyShell(ctx context.Context, doc state.Document) ([]state.Component, error) {
	b.extensions.idle = carried(doc, b.options.Extensions)
	b.passkeys = givePasskeys(doc.Passkeys, b.options.Passkeys, b.mux, b.driver, b.process.Frozen)
	setShellPolicy(ctx, b.driver, b.options.Overrides.Permissions())
	b.mux.Permissions.Regrant(doc.Permissions)
	report := regrant(ctx, b.driver, doc.Permissions)
	report = append(report, idleLines(b.extensions.idle)...)
	applied, err := b.environment().ApplyMissing(ctx, doc)
	if err != nil {
		return nil, err
	}
	report = append(report, unused(applied)...)
	if err := b.initialiseTargets(ctx); err != nil {
		return nil, err
	}
	return report, nil
}

// carried are the extensions of an environment that the session still has, with
// what full Chrome kept of them in memory.
func carried(doc state.Document, has []state.Extension) []state.Extension {
	return slices.DeleteFunc(slices.Clone(doc.Extensions), func(saved state.Extension) bool {
		return !slices.ContainsFunc(has, func(e state.Extension) bool { return e.ID == saved.ID && e.SHA256 == saved.SHA256 })
	})
}

// idleLines report the extensions that do not run.
func idleLines(list []state.Extension) []state.Component {
	var lines []state.Component
	for _, e := range list {
		lines = append(lines, state.Component{Name: state.ComponentExtensions, Origin: e.Origin(), Saved: 1, Dropped: 1, Reason: report.NotInShell.Reason()})
		if n := len(e.Session); n > 0 {
			lines = append(lines, state.Component{Name: state.ComponentExtensionStorage, Origin: e.Origin(), Saved: n, Dropped: n, Reason: report.NotInShell.Reason()})
		}
	}
	return lines
}

// unused turns the lines of what only full Chrome uses: it is there, and does
// nothing.
func unused(lines []state.Component) []state.Component {
	for i, line := range lines {
		switch line.Name {
		case state.ComponentVisited, state.ComponentBookmarks, state.ComponentPasswords, state.ComponentAutofill,
			state.ComponentContentSettings, state.ComponentZoom, state.ComponentHSTS, state.ComponentPreferences:
			if line.Restored > 0 {
				lines[i].Restored, lines[i].Dropped, lines[i].Reason = 0, line.Saved, report.NotInShell.Reason()
			}
		}
	}
	return lines
}
