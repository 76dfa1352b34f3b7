package browser

import (
	"path/filepath"
	"slices"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// laidTab is a tab into which a script laid sessionStorage and window.name: where,
// which items Chrome said were stored, by storage key and key, and what was seen of
// the name.
type laidTab struct {
	url     string
	inPlace map[string]map[string]bool
	named   nameSight
}

// laid notes what localStorage was laid down, in the database that Chrome then
// has; lines are the report of that.
func (b *baseline) laid(dir *Dir, lines []state.Component) {
	b.localDB = inspect.GenerationOf(filepath.Join(dir.Profile(), profile.Default), inspect.LocalStorage)
	b.refused = map[string]bool{}
	for _, line := range lines {
		if line.Name == state.ComponentLocalStorage && line.Dropped > 0 {
			b.refused[line.Origin] = true
		}
	}
}

// lays reports whether sessionStorage is laid down for want of it in the profile.
func (b *baseline) lays(area state.Area) bool {
	u, _ := b.lacking(area)
	return u.Lay
}

func (b *baseline) lacking(area state.Area) (state.Unstored, bool) {
	i := slices.IndexFunc(b.Unstored, func(u state.Unstored) bool { return u.StorageKey == area.StorageKey })
	if i < 0 {
		return state.Unstored{}, false
	}
	return b.Unstored[i], true
}

// scripted notes what the tabs' scripts have laid down.
func (b *baseline) scripted(tabs []*heldTab) {
	b.laidTabs = nil
	for _, t := range tabs {
		if t.laying != nil {
			b.laidTabs = append(b.laidTabs, laidTab{t.laying.left.URL, t.laying.inPlace, t.laying.named})
		}
	}
}

// madeLocal tells who made what differs in the localStorage of a page's origin: the
// site, where all of it is known to have been there before the page ran.
func (b *baseline) madeLocal(dir *Dir) func(state.Area) string {
	kept := inspect.GenerationOf(filepath.Join(dir.Profile(), profile.Default), inspect.LocalStorage).Continues(b.localDB)
	return func(saved state.Area) string {
		return siteIf(len(saved.Items) == 0 || kept && !b.refused[saved.StorageKey])
	}
}

// hadSession gives what of a tab's saved sessionStorage was there before the page
// ran: what of it is missing later a script of the page has changed. All was there
// where the profile was found to have it; of what a script laid down, the items
// that Chrome said were stored.
func (b *baseline) hadSession(dir *Dir) func(state.Tab, state.Area) state.Area {
	kept := inspect.GenerationOf(filepath.Join(dir.Profile(), profile.Default), inspect.SessionStorage).Continues(b.sessionDB)
	return func(tab state.Tab, saved state.Area) state.Area {
		u, lacks := b.lacking(saved)
		switch {
		case b.byScript || u.Lay:
			return saved.Only(func(key string) bool { return b.wasLaid(tab.URL, saved.StorageKey, key) })
		case kept && !lacks:
			return saved
		default:
			return state.Area{StorageKey: saved.StorageKey}
		}
	}
}

// wasLaid reports whether Chrome said that an item was stored, in every tab of a
// URL that it was laid down in.
func (b *baseline) wasLaid(url, storageKey, key string) bool {
	laid := false
	for _, t := range b.laidTabs {
		items, some := t.inPlace[storageKey]
		if t.url != url || !some {
			continue
		}
		if !items[key] {
			return false
		}
		laid = true
	}
	return laid
}

// hadName tells who made a difference of the window.name of a tab: the site, where
// the name was there at the first look at every tab of that URL, or a script of the
// page may have run before.
func (b *baseline) hadName(tab state.Tab) string {
	laid := false
	for _, t := range b.laidTabs {
		if t.url == tab.URL && t.named == unnamed {
			return state.ByRestore
		}
		laid = laid || t.url == tab.URL
	}
	return siteIf(laid)
}

func siteIf(site bool) string {
	if site {
		return state.BySite
	}
	return state.ByRestore
}
