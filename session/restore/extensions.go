package restore

import (
	"context"
	"os"
	"slices"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// install puts the extensions of a session into its run directory. It checks those that
// the archive contained (saved). It copies those that the request names (named) from the
// store; they replace another version of the same ID. It returns the installed
// extensions, and a report line for each one that is lost.
func (r *Restorer) install(ctx context.Context, dir *browser.Dir, saved []state.Extension, named []profiles.Extension) (list []state.Extension, lost []state.Component, err error) {
	for _, e := range saved {
		if slices.ContainsFunc(named, func(n profiles.Extension) bool { return n.ID == e.ID && n.SHA256 != e.SHA256 }) {
			if err := os.RemoveAll(browser.ExtensionDir(dir, e.ID)); err != nil {
				return nil, nil, fault.Wrap(err, fault.StoreFailed, "restore.install", "the other version of the extension could not be removed")
			}
			continue
		}
		same, err := extension.Matches(ctx, browser.ExtensionDir(dir, e.ID), e.ID, e.SHA256)
		if err != nil {
			return nil, nil, err
		}
		if !same {
			lost = append(lost, state.Component{Name: state.ComponentExtensions, Origin: e.Origin(), Saved: 1, Dropped: 1,
				Reason: report.FilesChanged.With("its files in the archive are missing or differ from the saved ones")})
			continue
		}
		e.Session = nil
		list = append(list, e)
	}
	for _, n := range named {
		if slices.ContainsFunc(list, func(e state.Extension) bool { return e.ID == n.ID }) {
			continue
		}
		if err := r.archives.CopyExtension(ctx, n.SHA256, browser.ExtensionDir(dir, n.ID)); err != nil {
			return nil, nil, err
		}
		list = append(list, state.Extension{ID: n.ID, SHA256: n.SHA256, Name: n.Name, Version: n.Version, Enabled: true})
	}
	return list, lost, nil
}
