package sessionstorage

import (
	"cmp"
	"slices"

	"github.com/stasisd/stasis/state"
)

// minApplySize is the size of an area, in bytes of names and values, from which it is
// applied even if no log is cut off: Chrome takes long to write that much.
const minApplySize = 512 << 10

// Unstored lists what a reading of tabs, made before Chrome closed the profile, has and the
// profile lacks. It is empty if the profile's sessionStorage was not read.
//
// If a log is cut off, every item that differs from the reading counts, because the last
// write may have contained it. Otherwise only items count that are missing and whose
// removal is not in the files: changed values were set by the site later. The site may
// still have cleared such items when its page closed, before Chrome had written them
// once. So they are applied only if the disk has no item of their area. The area must
// also be large, or its tab's page had not loaded: no page can have cleared that.
func (c Contents) Unstored(tabs []state.Tab) []state.Unstored {
	if !c.Known() {
		return nil
	}
	byKey := map[string]*state.Unstored{}
	for owner, read := range byOwner(tabs) {
		free := slices.Clone(c.areas[owner])
		unloaded := slices.ContainsFunc(tabs, func(t state.Tab) bool {
			return t.Unloaded && slices.ContainsFunc(t.Session, func(a state.Area) bool { return a.StorageKey == owner })
		})
		// An exact match on disk must not be used up by another tab.
		slices.SortStableFunc(read, func(a, b state.Area) int {
			_, lacksA, changedA := c.best(free, a)
			_, lacksB, changedB := c.best(free, b)
			return cmp.Or(cmp.Compare(lacksA, lacksB), cmp.Compare(changedA, changedB))
		})
		for _, saved := range read {
			best, n, _ := c.best(free, saved)
			if best >= 0 {
				free = slices.Delete(free, best, best+1)
			}
			if n == 0 {
				continue
			}
			u := byKey[owner]
			if u == nil {
				u = &state.Unstored{StorageKey: owner, Apply: c.shouldApply(saved, unloaded)}
				byKey[owner] = u
			}
			u.Items += n
			u.Apply = u.Apply || c.shouldApply(saved, unloaded)
		}
	}
	var all []state.Unstored
	for _, u := range byKey {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b state.Unstored) int { return cmp.Compare(a.StorageKey, b.StorageKey) })
	return all
}

// byOwner groups the areas of a reading by storage key. It leaves out empty areas: they
// are on no disk, and must not be matched with another tab's.
func byOwner(tabs []state.Tab) map[string][]state.Area {
	all := map[string][]state.Area{}
	for _, tab := range tabs {
		for _, a := range tab.Session {
			if len(a.Items) > 0 {
				all[a.StorageKey] = append(all[a.StorageKey], a)
			}
		}
	}
	return all
}

// best returns the index of the area on disk that is most like one that was read; -1 if
// there is none. lacks and changed count the items that it lacks, and those that it has
// with another value.
func (c Contents) best(on []diskArea, read state.Area) (at, lacks, changed int) {
	at, lacks = -1, len(read.Items)
	for i, a := range on {
		if n, other := c.compare(a, read); at < 0 || n < lacks || n == lacks && other < changed {
			at, lacks, changed = i, n, other
		}
	}
	return at, lacks, changed
}

// compare returns how many items of an area that was read the disk lacks, and how many it
// has with another value.
func (c Contents) compare(on diskArea, read state.Area) (lacks, changed int) {
	for _, item := range read.Items {
		value, there := on.items[item.Key]
		switch {
		case !there && (c.Truncated || !on.removed[item.Key]):
			lacks++
		case there && c.hasValues && value != item.Value:
			changed++
		}
	}
	if c.Truncated {
		return lacks + changed, 0
	}
	return lacks, changed
}

// shouldApply decides whether an area that differs on disk is to be applied. unloaded
// says that its page had not loaded.
func (c Contents) shouldApply(read state.Area, unloaded bool) bool {
	if _, named := state.ParseStorageKey(read.StorageKey); !named {
		return false // no script can access it
	}
	if c.Truncated {
		return true
	}
	size := 0
	for _, item := range read.Items {
		size += len(item.Key) + len(item.Value)
	}
	return (unloaded || size >= minApplySize) && c.Items()[read.StorageKey] == 0
}
