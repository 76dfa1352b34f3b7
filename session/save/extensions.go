package save

import (
	"context"
	"slices"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
)

// withoutChangedExtensions returns the document and the files without those extensions
// whose files have changed since the session got them.
func withoutChangedExtensions(ctx context.Context, j Job, doc state.Document, files []browser.File) (state.Document, []browser.File, error) {
	list := doc.Extensions
	if !doc.Complete {
		list = j.Options.Extensions
	}
	if list == nil && j.Chrome == nil {
		list = installedExtensions(ctx, j.Dir) // the daemon has died, and its list with it
	}
	if !doc.Complete {
		list = withEnabledState(j.Dir, list)
	}
	doc.Extensions = nil
	kept := map[string]bool{}
	for _, e := range list {
		same, err := extension.Matches(ctx, browser.ExtensionDir(j.Dir, e.ID), e.ID, e.SHA256)
		if err != nil {
			return doc, nil, err
		}
		if !same {
			doc.Missed = append(doc.Missed, state.Missed{Component: state.ComponentExtensions, Origin: e.Origin(),
				Reason: "its files changed while it was running"})
			continue
		}
		doc.Extensions = append(doc.Extensions, e)
		kept[e.ID] = true
	}
	doc.Missed = append(doc.Missed, lostExtensionStorage(doc, doc.Extensions)...)
	var rest []browser.File
	for _, f := range files {
		if id := browser.ExtensionOf(f.Name); id == "" || kept[id] {
			rest = append(rest, f)
		}
	}
	return doc, rest, nil
}

// withEnabledState reads from the profile which extensions are enabled, for a Chrome that no
// longer answers. A disabled extension stays disabled.
func withEnabledState(dir *browser.Dir, list []state.Extension) []state.Extension {
	enabled := browser.EnabledExtensions(dir)
	list = slices.Clone(list)
	for i, e := range list {
		if is, known := enabled[e.ID]; known {
			list[i].Enabled = is
		}
	}
	return list
}

// lostExtensionStorage lists what extensions lost with a Chrome that died before its
// state was read.
func lostExtensionStorage(doc state.Document, list []state.Extension) (lost []state.Missed) {
	for _, e := range list {
		reported := func(m state.Missed) bool {
			return m.Component == state.ComponentExtensionStorage && m.Origin == e.Origin()
		}
		if doc.Complete || slices.ContainsFunc(doc.Missed, reported) {
			continue
		}
		lost = append(lost, state.Missed{Component: state.ComponentExtensionStorage, Origin: e.Origin(),
			Reason: "chrome.storage.session is kept in memory only, and Chrome died before it could be read; anything in it is lost"})
	}
	return lost
}

// installedExtensions lists the extensions in a run directory.
func installedExtensions(ctx context.Context, dir *browser.Dir) []state.Extension {
	var list []state.Extension
	for _, id := range browser.ExtensionIDs(dir) {
		if is, err := extension.Inspect(ctx, browser.ExtensionDir(dir, id)); err == nil && is.ID == id {
			list = append(list, state.Extension{ID: is.ID, SHA256: is.SHA256, Name: is.Name, Version: is.Version, Enabled: true})
		}
	}
	return list
}

// pinnedExtensions returns a document's extensions as the catalogue records them.
func pinnedExtensions(doc state.Document) []profiles.PinnedExtension {
	var list []profiles.PinnedExtension
	for _, e := range doc.Extensions {
		list = append(list, profiles.PinnedExtension{ID: e.ID, SHA256: e.SHA256})
	}
	return list
}
