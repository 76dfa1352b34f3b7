package sessionstorage

import (
	"cmp"
	"slices"

	"github.com/stasisd/stasis/state"
)

// layFrom is how many bytes of names and values an area has that is laid down
// though nothing is cut off: so much takes Chrome long to write.
const layFrom = 512 << 10

// Lost tells what of a reading of tabs, made before Chrome closed the profile,
// is not in it; nothing where that was not read.
//
// Of a log that is cut off, whatever is not there as it was read counts, for it
// may be what the last write had. Otherwise only items count that are not there
// and whose removal is not either: changed values the site has set since. Such
// items the site may still have cleared as its page left, before Chrome had written
// them once, so they are to be laid down only where nothing is there of a large area,
// or of one of a tab whose page had not loaded: no page can have cleared that.
func (c Contents) Lost(tabs []state.Tab) []state.Unstored {
	if !c.Known() {
		return nil
	}
	byKey := map[string]*state.Unstored{}
	for owner, read := range byOwner(tabs) {
		free := slices.Clone(c.areas[owner])
		unloaded := slices.ContainsFunc(tabs, func(t state.Tab) bool {
			return t.Unloaded && slices.ContainsFunc(t.Session, func(a state.Area) bool { return a.StorageKey == owner })
		})
		// What is there as it was read must not be taken for another tab's.
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
				u = &state.Unstored{StorageKey: owner, Lay: c.lays(saved, unloaded)}
				byKey[owner] = u
			}
			u.Items += n
			u.Lay = u.Lay || c.lays(saved, unloaded)
		}
	}
	var all []state.Unstored
	for _, u := range byKey {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b state.Unstored) int { return cmp.Compare(a.StorageKey, b.StorageKey) })
	return all
}

// byOwner sorts what was read by storage key. What a tab has without an item
// is on no disk, and must not be taken for what another tab has there.
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

// best is which area of the disk is most like one that was read, -1 with none,
// and how many items it lacks and has changed.
func (c Contents) best(on []onDisk, read state.Area) (at, lacks, changed int) {
	at, lacks = -1, len(read.Items)
	for i, a := range on {
		if n, other := c.compare(a, read); at < 0 || n < lacks || n == lacks && other < changed {
			at, lacks, changed = i, n, other
		}
	}
	return at, lacks, changed
}

// compare counts the items that the disk lacks of an area that was read, and
// those that it has with another value.
func (c Contents) compare(on onDisk, read state.Area) (lacks, changed int) {
	for _, item := range read.Items {
		value, there := on.items[item.Key]
		switch {
		case !there && (c.Cut || !on.removed[item.Key]):
			lacks++
		case there && c.valued && value != item.Value:
			changed++
		}
	}
	if c.Cut {
		return lacks + changed, 0
	}
	return lacks, changed
}

// lays decides whether an area that is not on the disk as it was read is to be
// laid down; unloaded says that its page had not loaded.
func (c Contents) lays(read state.Area, unloaded bool) bool {
	if _, named := state.ParseStorageKey(read.StorageKey); !named {
		return false // no script can reach it
	}
	if c.Cut {
		return true
	}
	size := 0
	for _, item := range read.Items {
		size += len(item.Key) + len(item.Value)
	}
	return (unloaded || size >= layFrom) && c.Items()[read.StorageKey] == 0
}
