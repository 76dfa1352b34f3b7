package session

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// readOut brings the snapshot up in a Chrome of its own, without its tabs, and
// adds to the document what scripts read there: the jar, and localStorage and
// IndexedDB of every origin that is known. lines are the restore's report.
// The Chrome takes a place like a session's, and is thrown away.
func (s *Service) readOut(ctx context.Context, row profiles.Snapshot, saved snapshot.Snapshot) (doc state.Document, lines []state.Component, err error) {
	if err := s.capacity.Acquire(ctx, false); err != nil {
		return doc, nil, err
	}
	defer s.capacity.Release()
	dir, err := s.Browsers.NewDir()
	if err != nil {
		return doc, nil, err
	}
	got, err := s.Vault.Unpack(ctx, saved, dir.Profile(), snapshot.UnpackOptions{
		Limits: s.cfg.Unpack, Accept: s.accepts, Keep: []string{state.FileName}})
	if err == nil {
		doc, err = library.ParseDocument(row.ID, got.Kept[state.FileName])
	}
	if err != nil {
		s.clear(dir)
		return doc, nil, err
	}
	chrome, report, err := s.Browsers.Restored(ctx, dir, doc, browser.Options{})
	if err != nil {
		s.clear(dir)
		return doc, nil, err
	}
	defer s.discard(ctx, chrome)
	found, err := chrome.Storage(ctx, originsOf(doc))
	if err != nil {
		return doc, nil, err
	}
	return readInto(doc, found), report, nil
}

// readInto puts what was read in a Chrome into the document. An area that was
// not read again stays.
func readInto(doc state.Document, found browser.Storage) state.Document {
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

// originsOf lists the origins of the web that a document knows of.
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
