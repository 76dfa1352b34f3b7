package browser

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/stasisd/stasis/browser/datadir"
	"github.com/stasisd/stasis/browser/sift"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// The headless shell reads and writes the same profile as full Chrome and knows
// fewer of its files; those that it does not know it leaves alone (measured with
// 156: Preferences, Local State, History, Login Data, Sessions). It cannot bring
// a profile in while it runs, and opens no tab of the profile's by itself. So it
// starts on the profile, with a blank tab, and nothing of the environment runs
// until its tabs are opened over CDP: there is nothing to hold.

// freshShell starts the shell on an empty environment, with one blank tab.
func (s *Starter) freshShell(ctx context.Context, dir *Dir, o Options) (*Browser, error) {
	b, err := s.start(ctx, dir, datadir.Profile, o)
	if err != nil {
		return nil, err
	}
	b.givePasskeys(state.Passkeys{})
	b.setPolicy(ctx)
	if err := b.keepDownloads(ctx); err != nil {
		return nil, b.abandon(ctx, err)
	}
	if err := b.attend(ctx, b.setups()...); err != nil {
		return nil, b.abandon(ctx, err)
	}
	return b, nil
}

// restoredShell is [Starter.Restored] in the shell.
func (s *Starter) restoredShell(ctx context.Context, dir *Dir, doc state.Document, o Options) (*Browser, []state.Component, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	own := o.Overrides
	o.Overrides = own.Over(doc.Overrides)
	salvage, doc, err := s.prepareShell(ctx, dir, doc, o)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.start(ctx, dir, datadir.Profile, o)
	if err != nil {
		return nil, nil, err
	}
	b.salvage, b.idle = salvage, carried(doc, o.Extensions)
	report, err := b.bringInShell(ctx, doc)
	if err != nil {
		return nil, nil, b.abandon(ctx, err)
	}
	report = append(report, state.OverrideLines(doc.Overrides, own)...)
	return b, append(report, b.passkeyLines(doc.Passkeys)...), nil
}

// prepareShell readies the profile, which the shell opens when it starts. One
// that a newer Chrome wrote is put aside, as [Starter.Restored] says.
func (s *Starter) prepareShell(ctx context.Context, dir *Dir, doc state.Document, o Options) (salvage, state.Document, error) {
	v, err := s.Launcher.Version(ctx, dir, true)
	if err != nil {
		return salvage{}, doc, err
	}
	if doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, v.Full) {
		doc, _, laid, err := setAside(ctx, dir, doc, o, nil, s.Now())
		return laid, doc, err
	}
	// The preferences are for the full Chrome that may come next. Its session
	// files stay: the document says that they are old. What the profile has of
	// sessionStorage belongs to tabs that do not come back by themselves.
	profile := preparation(dir, doc, o, nil)
	profile.RestoreTabs, profile.StaleSessionStorage, profile.Before = true, doc.Complete, doc.Overrides.Permissions()
	_, found, err := s.prepare(ctx, dir, doc, profile)
	if err != nil {
		return salvage{}, doc, err
	}
	if err := sift.SetAside(ctx, filepath.Join(dir.Profile(), datadir.Profile)); err != nil {
		return salvage{}, doc, err
	}
	return found, doc, dir.Own()
}

// bringInShell lays down what the profile lacks, and opens the tabs.
func (b *Browser) bringInShell(ctx context.Context, doc state.Document) ([]state.Component, error) {
	b.givePasskeys(doc.Passkeys)
	b.setPolicy(ctx)
	b.mux.Regrant(doc.Permissions)
	report := b.regrant(ctx, doc.Permissions)
	report = append(report, idleLines(b.idle)...)
	laid, err := b.overlay(ctx, doc)
	if err != nil {
		return nil, err
	}
	report = append(report, unused(laid)...)
	if err := b.attend(ctx, b.setups()...); err != nil {
		return nil, err
	}
	if err := b.keepDownloads(ctx); err != nil {
		return nil, err
	}
	tabs, err := b.openTabs(ctx, doc)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the tabs could not be opened")
	}
	return append(report, tabs...), nil
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
		lines = append(lines, state.Component{Name: state.ComponentExtensions, Origin: e.Origin(), Saved: 1, Dropped: 1, Reason: state.NotInShell})
		if n := len(e.Session); n > 0 {
			lines = append(lines, state.Component{Name: state.ComponentExtensionStorage, Origin: e.Origin(), Saved: n, Dropped: n, Reason: state.NotInShell})
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
				lines[i].Restored, lines[i].Dropped, lines[i].Reason = 0, line.Saved, state.NotInShell
			}
		}
	}
	return lines
}
