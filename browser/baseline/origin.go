package baseline

import (
	"path/filepath"
	"slices"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// NameSeen is what a first look at a page found of the window.name that a script
// applied.
type NameSeen int

const (
	NameMissing NameSeen = iota // it was not there, or the page did not answer
	NameThere                   // it was there
	NameTaken                   // it was not, and a script of the page may have run
)

// ScriptedTab is a tab in which a script applied sessionStorage and window.name: its
// URL, which items Chrome said were stored, by storage key and key, and what was seen
// of the name.
type ScriptedTab struct {
	URL    string
	Stored map[string]map[string]bool
	Name   NameSeen
}

// NoteLocal notes which localStorage was applied, in the database that Chrome then
// has. lines are the report of that.
func (b *Baseline) NoteLocal(userDataDir string, lines []state.Component) {
	b.localDB = inspect.GenerationOf(filepath.Join(userDataDir, profile.Default), inspect.LocalStorage)
	b.refused = map[string]bool{}
	for _, line := range lines {
		if line.Name == state.ComponentLocalStorage && line.Dropped > 0 {
			b.refused[line.Origin] = true
		}
	}
}

// Applies reports whether a script applies sessionStorage that the profile lacks.
func (b *Baseline) Applies(area state.Area) bool {
	u, _ := b.lacking(area)
	return u.Lay
}

func (b *Baseline) lacking(area state.Area) (state.Unstored, bool) {
	i := slices.IndexFunc(b.Unstored, func(u state.Unstored) bool { return u.StorageKey == area.StorageKey })
	if i < 0 {
		return state.Unstored{}, false
	}
	return b.Unstored[i], true
}

// NoteByScript notes whether scripts apply all sessionStorage, in place of Chrome.
func (b *Baseline) NoteByScript(all bool) { b.byScript = all }

// NoteScripted notes what the tabs' scripts have applied.
func (b *Baseline) NoteScripted(tabs []ScriptedTab) { b.scripted = tabs }

// LocalBy tells who made what differs in the localStorage of a page's origin: the
// site, where all of it is known to have been there before the page ran.
func (b *Baseline) LocalBy(userDataDir string) func(state.Area) string {
	kept := inspect.GenerationOf(filepath.Join(userDataDir, profile.Default), inspect.LocalStorage).Continues(b.localDB)
	return func(saved state.Area) string {
		return siteIf(len(saved.Items) == 0 || kept && !b.refused[saved.StorageKey])
	}
}

// HadSession gives what of a tab's saved sessionStorage was there before the page
// ran: what of it is missing later a script of the page has changed. All was there
// where the profile was found to have it; of what a script applied, the items
// that Chrome said were stored.
func (b *Baseline) HadSession(userDataDir string) func(state.Tab, state.Area) state.Area {
	kept := inspect.GenerationOf(filepath.Join(userDataDir, profile.Default), inspect.SessionStorage).Continues(b.sessionDB)
	return func(tab state.Tab, saved state.Area) state.Area {
		u, lacks := b.lacking(saved)
		switch {
		case b.byScript || u.Lay:
			return saved.Only(func(key string) bool { return b.wasApplied(tab.URL, saved.StorageKey, key) })
		case kept && !lacks:
			return saved
		default:
			return state.Area{StorageKey: saved.StorageKey}
		}
	}
}

// wasApplied reports whether Chrome said that an item was stored, in every tab of a
// URL that it was applied in.
func (b *Baseline) wasApplied(url, storageKey, key string) bool {
	applied := false
	for _, t := range b.scripted {
		items, some := t.Stored[storageKey]
		if t.URL != url || !some {
			continue
		}
		if !items[key] {
			return false
		}
		applied = true
	}
	return applied
}

// NameBy tells who made a difference of the window.name of a tab: the site, where
// the name was there at the first look at every tab of that URL, or a script of the
// page may have run before.
func (b *Baseline) NameBy(tab state.Tab) string {
	applied := false
	for _, t := range b.scripted {
		if t.URL == tab.URL && t.Name == NameMissing {
			return state.ByRestore
		}
		applied = applied || t.URL == tab.URL
	}
	return siteIf(applied)
}

func siteIf(site bool) string {
	if site {
		return state.BySite
	}
	return state.ByRestore
}

// DiffersBy tells who made a difference that is there before any page has run. Of
// a profile that Chrome closed the document may have the reading from before:
// what differs then, the site set last.
func (b *Baseline) DiffersBy(doc state.Document, component string, applied bool) string {
	if doc.Datadir == state.DatadirClean && !doc.IsFromDisk(component) && !applied {
		return state.BySite
	}
	return state.ByRestore
}
