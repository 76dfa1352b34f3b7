package capture

import (
	"context"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/storage"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Read reads the state of a running environment over CDP: every cookie of the profile,
// localStorage of every origin that has a live frame, and for each tab its
// sessionStorage, window.name and back/forward list. It neither pauses nor changes pages,
// and they cannot notice it.
//
// A tab that closes with a client is no tab of the environment. Only its origins' localStorage is
// read.
//
// It fails only if the browser itself does not answer. The document is then not complete: it
// must not replace anything. What a single tab did not return
// is listed in the document's Missed.
func Read(ctx context.Context, conn Conn) (state.Document, error) {
	const op = "capture.read"
	doc := state.Document{SchemaVersion: state.SchemaVersion,
		Cookies: []state.Cookie{}, Local: []state.Area{}, Tabs: []state.Tab{}}
	targets, foreign, err := split(ctx, conn)
	if err != nil {
		return doc, fault.Wrap(err, fault.BrowserFailed, op, "the tabs could not be listed")
	}
	for _, t := range foreign {
		if t.Type == "page" {
			doc.Missed = append(doc.Missed, state.Missed{Component: state.ComponentTabs, Origin: t.URL,
				Reason: "it is in a browser context that a client made, which Chrome keeps in memory only"})
		}
	}
	waiting, cancel := newPatience(ctx)
	defer cancel()
	tabs, endTabs := context.WithTimeout(ctx, tabsDeadline)
	defer endTabs()
	readings := readUntilStable(tabs, waiting, conn, targets)
	for range rereads {
		if agree(readings) || waiting.reread.Err() != nil || slices.ContainsFunc(readings, func(r reading) bool { return len(r.missed) > 0 }) {
			break // a tab that does not answer would take its deadline each time
		}
		again := readUntilStable(tabs, waiting, conn, targets)
		if tabs.Err() != nil {
			break // it is not complete
		}
		readings = again
	}
	local := map[string]state.Area{}
	for _, r := range readings {
		if !r.temporary {
			doc.Tabs = append(doc.Tabs, r.tab)
			doc.Missed = append(doc.Missed, r.missed...)
		}
		for _, area := range r.local {
			local[area.StorageKey] = area
		}
	}
	for _, area := range local {
		doc.Local = append(doc.Local, area)
	}
	slices.SortFunc(doc.Local, func(a, b state.Area) int { return strings.Compare(a.StorageKey, b.StorageKey) })
	// Last, because a cookie that a script sets arrives at Chrome's network process later; see
	// awaitCookies.
	if doc.Cookies, err = Cookies(ctx, conn); err != nil {
		return doc, fault.Wrap(err, fault.BrowserFailed, op, "the cookies could not be read")
	}
	doc.Complete = ctx.Err() == nil
	return doc, ctx.Err()
}

// agree reports whether all tabs of an origin have the same localStorage. Each process has a
// copy, which Chrome updates a moment after another process has written. A site that keeps
// writing may differ each time.
func agree(readings []reading) bool {
	first := map[string][]state.Item{}
	for _, r := range readings {
		for _, area := range r.local {
			items := slices.SortedFunc(slices.Values(area.Items), func(a, b state.Item) int { return strings.Compare(a.Key, b.Key) })
			if earlier, ok := first[area.StorageKey]; ok && !slices.Equal(earlier, items) {
				return false
			}
			first[area.StorageKey] = items
		}
	}
	return true
}

// Cookies reads the whole jar of the profile, sorted by domain, path and name.
func Cookies(ctx context.Context, conn cdp.Session) ([]state.Cookie, error) {
	res, err := cdp.Call(ctx, conn, storage.GetCookies, storage.GetCookiesParams{})
	if err != nil {
		return nil, err
	}
	jar := make([]state.Cookie, 0, len(res.Cookies))
	for _, c := range res.Cookies {
		jar = append(jar, fromCDP(c))
	}
	slices.SortFunc(jar, func(a, b state.Cookie) int { return strings.Compare(a.Identity(), b.Identity()) })
	return jar, nil
}
