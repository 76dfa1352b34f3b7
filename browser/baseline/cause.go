package baseline

import (
	"slices"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// NameResult is the result of the first look at a page's window.name, which a script
// applied.
type NameResult int

const (
	NameMissing      NameResult = iota // the name was missing, or the page did not answer
	NamePresent                        // the name was there
	NameMaybeChanged                   // the name was missing, and a script of the page may have run
)

// ScriptedTab is a tab in which a script applied sessionStorage and window.name. It has
// the tab's ID and URL, the items that Chrome reported as stored (by storage key and item key),
// and what was seen of the name.
type ScriptedTab struct {
	ID     string
	URL    string
	Stored map[string]map[string]bool
	Name   NameResult
}

// NoteLocal records which localStorage was applied, and the database that Chrome uses
// from then on. lines are the report lines of the application.
func (b *Baseline) NoteLocal(userDataDir string, lines []state.Component) {
	b.localDB = inspect.GenerationOf(profile.Path(userDataDir), inspect.LocalStorage)
	b.refused = map[string]bool{}
	for _, line := range lines {
		if line.Name == state.ComponentLocalStorage && line.Dropped > 0 {
			b.refused[line.Origin] = true
		}
	}
}

// Applies reports whether a script applies an area of sessionStorage because the profile
// lacks it.
func (b *Baseline) Applies(area state.Area) bool {
	u, _ := b.lacking(area)
	return u.Apply
}

func (b *Baseline) lacking(area state.Area) (state.Unstored, bool) {
	i := slices.IndexFunc(b.Unstored, func(u state.Unstored) bool { return u.StorageKey == area.StorageKey })
	if i < 0 {
		return state.Unstored{}, false
	}
	return b.Unstored[i], true
}

// NoteByScript records whether scripts apply all sessionStorage instead of Chrome.
func (b *Baseline) NoteByScript(all bool) { b.byScript = all }

// NoteScripted records what the tabs' scripts have applied.
func (b *Baseline) NoteScripted(tabs []ScriptedTab) { b.scripted = tabs }

// NoteTabs records the ID of the tab that each saved tab has become; "" where that is not
// certain.
func (b *Baseline) NoteTabs(ids []string) { b.tabs = ids }

// TabOf returns the ID of the tab that the i-th saved tab has become; "" if that is not
// certain.
func (b *Baseline) TabOf(i int) string {
	if i < len(b.tabs) {
		return b.tabs[i]
	}
	return ""
}

// is reports whether a script applied state of a saved tab in t. The tab's TargetID is that
// of the tab that it has become; if that is "", the URL decides.
func (t ScriptedTab) is(tab state.Tab) bool {
	return t.URL == tab.URL && (tab.TargetID == "" || t.ID == tab.TargetID)
}

// LocalCause returns a function that says who caused a difference in the localStorage of a
// page's origin. It is the site if all of the area is known to have been there before the
// page ran.
func (b *Baseline) LocalCause(userDataDir string) func(state.Area) string {
	kept := inspect.GenerationOf(profile.Path(userDataDir), inspect.LocalStorage).Continues(b.localDB)
	return func(saved state.Area) string {
		return siteIf(len(saved.Items) == 0 || kept && !b.refused[saved.StorageKey])
	}
}

// SessionBefore returns a function that gives the part of a tab's saved sessionStorage that
// was there before the page ran. The tab's TargetID is that of the restored tab, or "" if
// that is not certain. If an item of that part is missing later, a script of
// the page changed it. If the profile had the area, the part is all of it. Of an area
// that a script applied, it is the items that Chrome reported as stored.
func (b *Baseline) SessionBefore(userDataDir string) func(state.Tab, state.Area) state.Area {
	kept := inspect.GenerationOf(profile.Path(userDataDir), inspect.SessionStorage).Continues(b.sessionDB)
	return func(tab state.Tab, saved state.Area) state.Area {
		u, lacks := b.lacking(saved)
		switch {
		case b.byScript || u.Apply:
			return saved.Only(func(key string) bool { return b.wasApplied(tab, saved.StorageKey, key) })
		case kept && !lacks:
			return saved
		default:
			return state.Area{StorageKey: saved.StorageKey}
		}
	}
}

// wasApplied reports whether Chrome reported an item as stored in the tab, or in every tab
// that may be it, in which it was applied.
func (b *Baseline) wasApplied(tab state.Tab, storageKey, key string) bool {
	applied := false
	for _, t := range b.scripted {
		items, some := t.Stored[storageKey]
		if !t.is(tab) || !some {
			continue
		}
		if !items[key] {
			return false
		}
		applied = true
	}
	return applied
}

// NameCause says who caused a difference in a tab's window.name. The tab's TargetID is as for
// SessionBefore. It is the site if in every tab that may be it one of two things holds: the first look found the name, or a script of
// the page may have run before.
func (b *Baseline) NameCause(tab state.Tab) string {
	applied := false
	for _, t := range b.scripted {
		if t.is(tab) && t.Name == NameMissing {
			return state.ByRestore
		}
		applied = applied || t.is(tab)
	}
	return siteIf(applied)
}

func siteIf(site bool) string {
	if site {
		return state.BySite
	}
	return state.ByRestore
}

// DifferenceCause says who caused a difference that exists before any page has run. For a
// profile that Chrome closed, the document may have an earlier reading; then the site
// made the change before Chrome closed.
func (b *Baseline) DifferenceCause(doc state.Document, component string, applied bool) string {
	if doc.Datadir == state.DatadirClean && !doc.IsFromDisk(component) && !applied {
		return state.BySite
	}
	return state.ByRestore
}
