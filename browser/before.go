package browser

import (
	"path/filepath"
	"slices"

	"github.com/stasisd/stasis/browser/datadir"
	"github.com/stasisd/stasis/browser/inventory"
	"github.com/stasisd/stasis/state"
)

// before is what is known of an environment when no page of it had run yet. It
// decides who made a difference that is found later.
type before struct {
	// jar is what the profile's cookies were.
	jar []state.Cookie
	// localDB and sessionDB are the databases that hold the storage: whole, or
	// what was damaged in them had been replaced. What such a database held Chrome
	// had, as long as it goes on with it: it brings back all of one or nothing.
	localDB, sessionDB inventory.Generation
	// unwritten are the storage keys whose localStorage was to be laid down and
	// could not be.
	unwritten map[string]bool
	// unstored is what of the tabs' sessionStorage the profile does not have.
	unstored []state.Unstored
	// byScript: all sessionStorage was laid down by script, not brought back by Chrome;
	// unscripted are the storage keys of each URL that no script has reached.
	byScript   bool
	unscripted map[string]map[string]bool
}

// laid notes what localStorage was laid down, in the database that Chrome then
// has; lines are the report of that.
func (b *before) laid(dir *Dir, lines []state.Component) {
	b.localDB = inventory.GenerationOf(filepath.Join(dir.Profile(), datadir.Profile), inventory.LocalStorage)
	b.unwritten = map[string]bool{}
	for _, line := range lines {
		if line.Name == state.ComponentLocalStorage && line.Dropped > 0 {
			b.unwritten[line.Origin] = true
		}
	}
}

// lays reports whether sessionStorage is laid down for want of it in the profile.
func (b *before) lays(area state.Area) bool {
	u, _ := b.lacking(area)
	return u.Lay
}

func (b *before) lacking(area state.Area) (state.Unstored, bool) {
	i := slices.IndexFunc(b.unstored, func(u state.Unstored) bool { return u.StorageKey == area.StorageKey })
	if i < 0 {
		return state.Unstored{}, false
	}
	return b.unstored[i], true
}

// scripted notes which areas of the tabs their scripts did not come to lay down.
func (b *before) scripted(tabs []*heldTab) {
	b.unscripted = map[string]map[string]bool{}
	for _, t := range tabs {
		if t.laying == nil {
			continue
		}
		url := t.laying.left.URL
		if b.unscripted[url] == nil {
			b.unscripted[url] = map[string]bool{}
		}
		for _, area := range t.laying.left.Session {
			b.unscripted[url][area.StorageKey] = true
		}
	}
}

// madeLocal tells who made what differs in the localStorage of a page's origin: the
// site, where all of it is known to have been there before the page ran.
func (b *before) madeLocal(dir *Dir) func(state.Area) string {
	kept := inventory.GenerationOf(filepath.Join(dir.Profile(), datadir.Profile), inventory.LocalStorage).Continues(b.localDB)
	return func(saved state.Area) string {
		return siteIf(len(saved.Items) == 0 || kept && !b.unwritten[saved.StorageKey])
	}
}

// madeSession tells the same of the sessionStorage of a tab, which was there
// where the profile was found to have it, or a script laid it down.
func (b *before) madeSession(dir *Dir) func(state.Tab, state.Area) string {
	kept := inventory.GenerationOf(filepath.Join(dir.Profile(), datadir.Profile), inventory.SessionStorage).Continues(b.sessionDB)
	return func(tab state.Tab, saved state.Area) string {
		u, lacks := b.lacking(saved)
		had := kept && !lacks
		if b.byScript || u.Lay {
			left, laid := b.unscripted[tab.URL]
			had = laid && !left[saved.StorageKey]
		}
		return siteIf(len(saved.Items) == 0 || had)
	}
}

func siteIf(site bool) string {
	if site {
		return state.BySite
	}
	return state.ByRestore
}
