package restore

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// UnpackDocument unpacks an archive into a user data directory and returns its state
// document.
type UnpackDocument func(ctx context.Context, saved snapshot.Snapshot, userDataDir string) (state.Document, error)

// ReadStorage restores a snapshot in a separate Chrome, without its tabs. It returns the
// document with what scripts read there: the cookies, and localStorage and IndexedDB of
// every known origin. lines are the restore's report. ReadStorage ends the Chrome before it
// returns. The caller holds a slot for it.
func (r *Restorer) ReadStorage(ctx context.Context, saved snapshot.Snapshot, limits browser.Egress, unpack UnpackDocument) (doc state.Document, lines []state.Component, err error) {
	dir, err := r.browsers.NewDir()
	if err != nil {
		return doc, nil, err
	}
	if doc, err = unpack(ctx, saved, dir.Profile()); err != nil {
		r.remove(dir)
		return doc, nil, err
	}
	chrome, report, err := r.browsers.Restored(ctx, dir, doc, browser.Options{Egress: limits})
	if err != nil {
		r.remove(dir)
		return doc, nil, err
	}
	defer browsers.Discard(ctx, chrome, r.log)
	found, err := chrome.Storage(ctx, originsOf(doc))
	if err != nil {
		return doc, nil, err
	}
	return mergeStorage(doc, found), report, nil
}

// mergeStorage puts what was read in a Chrome into the document. It keeps areas that were not
// read again.
func mergeStorage(doc state.Document, found browser.Storage) state.Document {
	doc.Cookies, doc.IndexedDB = found.Cookies, found.IndexedDB
	doc.Missed = append(slices.Clone(doc.Missed), found.Missed...)
	areas := found.Local
	for _, area := range doc.Local {
		if !slices.ContainsFunc(areas, func(a state.Area) bool { return a.StorageKey == area.StorageKey }) {
			areas = append(areas, area)
		}
	}
	doc.Local, doc.Complete = areas, true
	return doc
}

// originsOf lists the http and https origins that a document names.
func originsOf(doc state.Document) []string {
	var origins []string
	add := func(address string) {
		u, err := url.Parse(address)
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.Contains(address, "^") {
			origins = append(origins, u.Scheme+"://"+u.Host)
		}
	}
	for _, area := range doc.Local {
		add(area.StorageKey)
	}
	for _, h := range doc.Inventory {
		if h.Component == state.ComponentIndexedDB || h.Component == state.ComponentLocalStorage {
			add(h.Origin)
		}
	}
	for _, d := range doc.IndexedDB {
		add(d.Origin)
	}
	for _, tab := range doc.Tabs {
		add(tab.URL)
	}
	slices.Sort(origins)
	return slices.Compact(origins)
}
