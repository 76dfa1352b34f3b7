package profile

import (
	"slices"

	"github.com/stasisd/stasis/state"
)

// localStorage decides about each storage key separately: Chrome records with each when
// it wrote it.
func (v *Verdict) localStorage(c Copies) {
	switch found := c.Found.LocalStorage; {
	case c.Crash != nil:
		for _, area := range c.Document.Local {
			v.Local[area.StorageKey] = v.localAfterCrash(c, area)
		}
	case c.closed():
		v.Unwritten = c.Document.Unwritten
		if !c.Document.IsFromDisk(state.ComponentLocalStorage) { // otherwise it was compared when it was saved
			v.Unwritten = found.Unwritten(c.Document.Local, c.Document.CapturedAt)
		}
		_, damaged := c.Found.Inventory.Damaged(state.ComponentLocalStorage)
		v.Broken.LocalStorage = c.Document.Complete && (damaged || c.lacksLocal(v.Unwritten))
		for _, area := range c.Document.Local {
			v.Local[area.StorageKey] = FromProfile
			if v.Broken.LocalStorage || slices.Contains(v.Unwritten, area.StorageKey) {
				v.Local[area.StorageKey] = FromDocument
			}
		}
		if found.Truncated && len(v.Unwritten) == 0 {
			v.Truncated = append(v.Truncated, state.ComponentLocalStorage)
		}
	default:
		for _, area := range c.Document.Local {
			v.Local[area.StorageKey] = c.defaultSource()
		}
		if c.unread() && found.Truncated {
			v.Truncated = append(v.Truncated, state.ComponentLocalStorage)
		}
	}
}

// localAfterCrash decides about one storage key, as a whole, after a crash. The
// document's items win unless Chrome wrote the key after they were read. Then the
// profile's items win, even if the key is empty there. written is when Chrome last wrote
// the database's files; last is Chrome's own record of this key; had is what the files
// held at the reading. If these do not decide, the document wins and a doubt names the
// key.
func (v *Verdict) localAfterCrash(c Copies, area state.Area) Source {
	found, written := c.Found.LocalStorage, c.Crash.Written.LocalStorage
	last, noted := found.Commits[area.StorageKey]
	had, _ := c.Document.Inventory.Of(state.ComponentLocalStorage, area.StorageKey)
	doubt := func(reason string) { v.doubt(state.ComponentLocalStorage, area.StorageKey, reason) }
	switch {
	case found.Commits == nil && !written.After(c.Crash.From) && !c.Crash.unproven(written): // nothing was written since the reading
	case found.Commits == nil:
		doubt("Chrome's localStorage files cannot be read, so the items are those that Stasis last read over CDP")
	case found.Has(area):
		return FromProfile
	case noted && !last.Emptied && c.Crash.unproven(last.At), last.Emptied && had.Items == 0 && c.Crash.unproven(written):
		doubt(clockSetBack)
		return FromProfile
	case noted && !last.Emptied && last.At.After(c.Crash.Until):
		return FromProfile
	case noted && !last.Emptied && last.At.After(c.Crash.From):
		doubt("Chrome wrote this storage while Stasis read it over CDP, so the items are those that Stasis read")
	case last.Emptied && had.Items > 0:
		return FromProfile // it was on disk when it was saved, and was emptied since
	case !noted && had.Items > 0:
		doubt("this storage is missing on disk without a record of its removal, as if Chrome had created the database again, so the items are those that Stasis last read over CDP")
	case last.Emptied && written.After(c.Crash.Until):
		doubt("it is unknown whether this storage was emptied before or after Stasis last read it over CDP, so the items are those that Stasis read")
	}
	return FromDocument
}

// lacksLocal reports whether an item that was read from this profile is missing from its
// database. A database that exists and was not read is left to Chrome.
func (c Copies) lacksLocal(unwritten []string) bool {
	if !c.Document.IsFromDisk(state.ComponentLocalStorage) || c.Found.LocalStorage.Areas == nil && c.uncounted(state.ComponentLocalStorage) {
		return false
	}
	doc := c.Document
	doc.Unwritten = unwritten
	return slices.ContainsFunc(state.LoadedLocalStorageLines(doc.WithoutUnwritten(), append([]state.Area{}, c.Found.LocalStorage.Areas...)),
		func(line state.Component) bool { return line.Dropped > 0 })
}
