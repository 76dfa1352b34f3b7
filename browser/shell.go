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

// The headless shell reads and writes the same profile as full Chrome but knows fewer of
// its files. It leaves the other files unchanged (measured with 156: Preferences, Local
// State, History, Login Data, Sessions). It has one profile, which can be put in place
// after the start (package gate). It opens no tab of the profile on its own. Nothing of
// the environment runs until its tabs are opened over CDP, so no tab needs to be paused.

// spareShell starts an empty shell that waits for its profile.
func (s *Starter) spareShell(ctx context.Context, dir *Dir, o Options) (*Spare, error) {
	if err := os.RemoveAll(profile.Path(dir.Profile())); err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, "browser.start", "an earlier profile could not be removed")
	}
	if err := gate.Shell().Create(profile.Path(dir.Profile())); err != nil {
		return nil, err
	}
	if err := dir.ChownProfile(profile.Default); err != nil {
		return nil, err
	}
	b, err := s.start(ctx, dir, profile.Default, o, false)
	if err != nil {
		return nil, err
	}
	if err := keepDownloads(ctx, b.driver, dir); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return &Spare{starter: s, b: b, startOptions: o}, nil
}

// freshShell is [Spare.Fresh] in the shell.
func (p *Spare) freshShell(ctx context.Context, o Options) (*Browser, error) {
	b := p.b
	b.setOptions(o)
	err := limit(b, o)
	if err == nil {
		err = loadWaiting(b.dir)
	}
	if err == nil {
		err = alive(ctx, b)
	}
	if err == nil {
		b.passkeys = newPasskeys(state.Passkeys{}, b.options.Passkeys, b.mux, b.driver, b.process.Frozen)
		setShellPolicy(ctx, b.driver, b.options.Overrides.Permissions())
		err = b.initialiseTargets(ctx)
	}
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	return b, nil
}

// loadWaiting gives the shell in a run directory the profile that waits there.
func loadWaiting(dir *Dir) error {
	waiting := dir.Waiting()
	folder := profile.Path(waiting.Profile())
	if err := gate.Shell().Fill(folder); err != nil {
		return err
	}
	if err := waiting.Chown(); err != nil {
		return err
	}
	if _, err := gate.Shell().Open(profile.Path(dir.Profile()), folder); err != nil {
		return err
	}
	extensions := filepath.Join(waiting.Profile(), profile.Extensions)
	if _, err := os.Lstat(extensions); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := os.Rename(extensions, filepath.Join(dir.Profile(), profile.Extensions))
	return fault.Wrap(err, fault.BrowserFailed, "browser.enter", "the environment's extensions could not be moved into the run directory")
}

// loadShell is [Spare.load] in the shell.
func (p *Spare) loadShell(ctx context.Context, doc state.Document, o Options) (*Standby, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	b, own := p.b, o.Overrides
	o.Overrides = own.WithDefaults(doc.Overrides)
	b.setOptions(o)
	answered := make(chan error, 1)
	go func() { answered <- alive(ctx, b) }()
	base, doc, err := p.starter.prepareShell(ctx, b.dir.Waiting(), doc, o, b.version)
	if gone := <-answered; gone != nil {
		err = gone
	}
	if err == nil {
		err = limit(b, o)
	}
	if err == nil {
		err = loadWaiting(b.dir)
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

// loadShell is [Starter.load] in the shell, which starts with the profile in place.
func (s *Starter) loadShell(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Standby, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	own := o.Overrides
	o.Overrides = own.WithDefaults(doc.Overrides)
	v, err := s.Launcher.Version(ctx, dir, true)
	if err != nil {
		return nil, err
	}
	base, doc, err := s.prepareShell(ctx, dir, doc, o, v.Full)
	if err == nil {
		err = dir.Chown()
	}
	if err != nil {
		return nil, err
	}
	b, err := s.start(ctx, dir, profile.Default, o, false)
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

// prepareShell prepares a profile for a shell of the given version that has not opened it
// yet. A profile that a newer Chrome wrote is set aside, as in [Spare.Restored].
func (s *Starter) prepareShell(ctx context.Context, dir *Dir, doc state.Document, o Options, version string) (baseline.Baseline, state.Document, error) {
	if doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, version) {
		doc, _, base, err := setAside(ctx, dir, doc, o, nil, s.Now())
		return base, doc, err
	}
	// Prepare the preferences for the full Chrome that may run next. Keep its session
	// files; the document marks them as old. The profile's sessionStorage belongs to tabs
	// that the shell does not reopen on its own.
	prep := preparation(dir, doc, o, nil)
	prep.RestoreTabs, prep.StaleSessionStorage, prep.Before = true, doc.Complete, doc.Overrides.Permissions()
	_, settings, err := prepare(ctx, dir, prep)
	if err != nil {
		return baseline.Baseline{}, doc, err
	}
	found, err := s.inspect(ctx, dir, doc, settings, nil)
	if err != nil {
		return baseline.Baseline{}, doc, err
	}
	return found, doc, filter.SetAside(ctx, filepath.Join(dir.Profile(), profile.Default))
}

// applyShell applies the state that the profile lacks, before any tab is opened.
func (b *Browser) applyShell(ctx context.Context, doc state.Document) ([]state.Component, error) {
	b.extensions.unused = keptExtensions(doc, b.options.Extensions)
	b.passkeys = newPasskeys(doc.Passkeys, b.options.Passkeys, b.mux, b.driver, b.process.Frozen)
	setShellPolicy(ctx, b.driver, b.options.Overrides.Permissions())
	b.mux.Permissions.SetGranted(doc.Permissions)
	report := regrant(ctx, b.driver, doc.Permissions)
	report = append(report, unusedLines(b.extensions.unused)...)
	applied, err := b.environment().ApplyMissing(ctx, doc)
	if err != nil {
		return nil, err
	}
	report = append(report, markUnused(applied)...)
	if err := b.initialiseTargets(ctx); err != nil {
		return nil, err
	}
	return report, nil
}

// keptExtensions returns the environment's extensions that the session still has, with the
// in-memory storage that full Chrome had of them.
func keptExtensions(doc state.Document, has []state.Extension) []state.Extension {
	return slices.DeleteFunc(slices.Clone(doc.Extensions), func(saved state.Extension) bool {
		return !slices.ContainsFunc(has, func(e state.Extension) bool { return e.ID == saved.ID && e.SHA256 == saved.SHA256 })
	})
}

// unusedLines returns the report lines of extensions that do not run.
func unusedLines(list []state.Extension) []state.Component {
	var lines []state.Component
	for _, e := range list {
		lines = append(lines, state.Component{Name: state.ComponentExtensions, Origin: e.Origin(), Saved: 1, Dropped: 1, Reason: report.NotInShell.Reason()})
		if n := len(e.Session); n > 0 {
			lines = append(lines, state.Component{Name: state.ComponentExtensionStorage, Origin: e.Origin(), Saved: n, Dropped: n, Reason: report.NotInShell.Reason()})
		}
	}
	return lines
}

// markUnused marks the components as dropped that only full Chrome uses: the shell keeps
// them but does not use them.
func markUnused(lines []state.Component) []state.Component {
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
