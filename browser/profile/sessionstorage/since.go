package sessionstorage

import (
	"maps"
	"slices"
	"strings"

	"github.com/stasisd/stasis/state"
)

// WrittenSince returns the tabs' areas of a storage key that Chrome has written since an
// earlier reading of the database: the items of each, sorted by key. An area that is now
// empty counts only if the removals of its items are still in the files; otherwise Chrome
// has created the database again. ok is false if this is unknown, because one of the two
// readings is incomplete.
func (c Contents) WrittenSince(earlier Contents, storageKey string) (written [][]state.Item, ok bool) {
	if !c.Known() || !earlier.Known() || !c.hasValues || !earlier.hasValues {
		return nil, false
	}
	was := byNumber(earlier.areas[storageKey])
	for number, a := range byNumber(c.areas[storageKey]) {
		before, there := was[number]
		switch {
		case maps.Equal(a.items, before.items):
		case len(a.items) == 0 && there && !removedAll(a, before):
		default:
			written = append(written, sorted(a.items))
		}
	}
	return written, true
}

// Has reports whether some tab has exactly the items of an area.
func (c Contents) Has(read state.Area) bool {
	wanted := map[string]string{}
	for _, item := range read.Items {
		wanted[item.Key] = item.Value
	}
	return c.Known() && c.hasValues && slices.ContainsFunc(c.areas[read.StorageKey], func(a diskArea) bool { return maps.Equal(a.items, wanted) })
}

func byNumber(areas []diskArea) map[string]diskArea {
	all := map[string]diskArea{}
	for _, a := range areas {
		all[a.number] = a
	}
	return all
}

func removedAll(a, before diskArea) bool {
	for key := range before.items {
		if !a.removed[key] {
			return false
		}
	}
	return true
}

func sorted(items map[string]string) []state.Item {
	all := make([]state.Item, 0, len(items))
	for key, value := range items {
		all = append(all, state.Item{Key: key, Value: value})
	}
	slices.SortFunc(all, func(a, b state.Item) int { return strings.Compare(a.Key, b.Key) })
	return all
}
