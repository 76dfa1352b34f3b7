package session

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

// install lays the extensions of a session into its run directory: those that
// its archive brought are there and are looked at, those that its create names
// are copied from the store, in place of another version of the same ID. It
// returns what the session has, and a report line for each that is lost.
func (s *Service) install(ctx context.Context, dir *browser.Dir, saved []state.Extension, named []profiles.Extension) (list []state.Extension, lost []state.Component, err error) {
	for _, e := range saved {
		if slices.ContainsFunc(named, func(n profiles.Extension) bool { return n.ID == e.ID && n.SHA256 != e.SHA256 }) {
			if err := os.RemoveAll(browser.ExtensionDir(dir, e.ID)); err != nil {
				return nil, nil, fault.Wrap(err, fault.StoreFailed, "session.install", "an extension's other version could not be removed")
			}
			continue
		}
		same, err := unchanged(ctx, dir, e)
		if err != nil {
			return nil, nil, err
		}
		if !same {
			lost = append(lost, state.Component{Name: state.ComponentExtensions, Origin: e.Origin(), Saved: 1, Dropped: 1,
				Reason: report.FilesChanged.With("its files in the archive are missing or are not those that were saved")})
			continue
		}
		e.Session = nil
		list = append(list, e)
	}
	for _, n := range named {
		if slices.ContainsFunc(list, func(e state.Extension) bool { return e.ID == n.ID }) {
			continue
		}
		if err := s.Extensions.Copy(ctx, n.SHA256, browser.ExtensionDir(dir, n.ID)); err != nil {
			return nil, nil, err
		}
		list = append(list, state.Extension{ID: n.ID, SHA256: n.SHA256, Name: n.Name, Version: n.Version, Enabled: true})
	}
	return list, lost, nil
}

// unchanged reports whether an extension's files in a run directory are those
// that it has been given. The folder belongs to Chrome, which writes its index
// of the extension's rules there. The error is that of ctx.
func unchanged(ctx context.Context, dir *browser.Dir, e state.Extension) (bool, error) {
	if !extension.IsID(e.ID) {
		return false, nil // a document's ID is no path
	}
	is, err := extension.Inspect(ctx, browser.ExtensionDir(dir, e.ID))
	return err == nil && is.ID == e.ID && is.SHA256 == e.SHA256, ctx.Err()
}

// pinned settles which extensions a snapshot holds: those whose files are still
// what the session was given. It returns the document and the files without the
// others.
func pinned(ctx context.Context, j job, doc state.Document, files []browser.File) (state.Document, []browser.File, error) {
	list := doc.Extensions
	if !doc.Complete {
		list = j.again.Extensions
	}
	if list == nil && j.chrome == nil {
		list = foundExtensions(ctx, j.dir) // of a daemon that died
	}
	if !doc.Complete {
		list = asInProfile(j.dir, list)
	}
	doc.Extensions = nil
	kept := map[string]bool{}
	for _, e := range list {
		same, err := unchanged(ctx, j.dir, e)
		if err != nil {
			return doc, nil, err
		}
		if !same {
			doc.Missed = append(doc.Missed, state.Missed{Component: state.ComponentExtensions, Origin: e.Origin(),
				Reason: "its files have changed while it ran"})
			continue
		}
		doc.Extensions = append(doc.Extensions, e)
		kept[e.ID] = true
	}
	doc.Missed = append(doc.Missed, inMemoryOnly(doc, doc.Extensions)...)
	var rest []browser.File
	for _, f := range files {
		if id := browser.ExtensionOf(f.Name); id == "" || kept[id] {
			rest = append(rest, f)
		}
	}
	return doc, rest, nil
}

// asInProfile gives extensions the enabled state that Chrome last wrote down,
// where nobody could ask it: one that was switched off stays so.
func asInProfile(dir *browser.Dir, list []state.Extension) []state.Extension {
	enabled := browser.EnabledExtensions(dir)
	list = slices.Clone(list)
	for i, e := range list {
		if is, known := enabled[e.ID]; known {
			list[i].Enabled = is
		}
	}
	return list
}

// inMemoryOnly is what extensions have lost with a Chrome that died before its
// state was read.
func inMemoryOnly(doc state.Document, list []state.Extension) (lost []state.Missed) {
	for _, e := range list {
		told := func(m state.Missed) bool {
			return m.Component == state.ComponentExtensionStorage && m.Origin == e.Origin()
		}
		if doc.Complete || slices.ContainsFunc(doc.Missed, told) {
			continue
		}
		lost = append(lost, state.Missed{Component: state.ComponentExtensionStorage, Origin: e.Origin(),
			Reason: "what it had in chrome.storage.session, if anything, Chrome kept in memory only and died before it was read"})
	}
	return lost
}

// foundExtensions are those that lie in a run directory.
func foundExtensions(ctx context.Context, dir *browser.Dir) []state.Extension {
	var list []state.Extension
	for _, id := range browser.ExtensionIDs(dir) {
		if is, err := extension.Inspect(ctx, browser.ExtensionDir(dir, id)); err == nil && is.ID == id {
			list = append(list, state.Extension{ID: is.ID, SHA256: is.SHA256, Name: is.Name, Version: is.Version, Enabled: true})
		}
	}
	return list
}

// pins are a document's extensions as the catalogue records them.
func pins(doc state.Document) []profiles.PinnedExtension {
	var list []profiles.PinnedExtension
	for _, e := range doc.Extensions {
		list = append(list, profiles.PinnedExtension{ID: e.ID, SHA256: e.SHA256})
	}
	return list
}

// lacks names the first of the named extensions that a Chrome does not have in
// that version; "" if it has all.
func lacks(has []state.Extension, named []profiles.Extension) string {
	for _, n := range named {
		if !slices.ContainsFunc(has, func(e state.Extension) bool { return e.ID == n.ID && e.SHA256 == n.SHA256 }) {
			return n.ID
		}
	}
	return ""
}
