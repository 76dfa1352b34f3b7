package profile

import (
	"slices"

	"github.com/stasisd/stasis/state"
)

// localStorage decides about each storage key by itself: Chrome notes with each when
// it wrote it.
func (v *Verdict) localStorage(c Copies) {
	switch found := c.Found.LocalStorage; {
	case c.Crash != nil:
		for _, area := range c.Document.Local {
			v.Local[area.StorageKey] = v.localAfterCrash(c, area)
		}
	case c.closed():
		v.Unwritten = c.Document.Unwritten
		if !c.Document.IsFromDisk(state.ComponentLocalStorage) { // else it was compared when it was saved
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
		if found.Cut && len(v.Unwritten) == 0 {
			v.Cut = append(v.Cut, state.ComponentLocalStorage)
		}
	default:
		for _, area := range c.Document.Local {
			v.Local[area.StorageKey] = c.otherwise()
		}
		if c.unread() && found.Cut {
			v.Cut = append(v.Cut, state.ComponentLocalStorage)
		}
	}
}

// localAfterCrash decides about one storage key, whole, after a crash. The document's
// items win unless Chrome has written the key since they were read; then the profile's
// do, also where it was emptied. written is when Chrome last wrote the database's files,
// last what it noted of this key itself, and had what the files held at the reading. Where
// these do not tell, the document wins and a doubt names the key.
func (v *Verdict) localAfterCrash(c Copies, area state.Area) Source {
	found, written := c.Found.LocalStorage, c.Crash.Written.LocalStorage
	last, noted := found.Commits[area.StorageKey]
	had, _ := c.Document.Inventory.Of(state.ComponentLocalStorage, area.StorageKey)
	doubt := func(reason string) { v.doubt(state.ComponentLocalStorage, area.StorageKey, reason) }
	switch {
	case found.Commits == nil && !written.After(c.Crash.From) && !c.Crash.unproven(written): // nothing was written since
	case found.Commits == nil:
		doubt("what Chrome left of it cannot be read, so it is as it was read last")
	case found.Has(area):
		return FromProfile
	case noted && !last.Emptied && c.Crash.unproven(last.At), last.Emptied && had.Items == 0 && c.Crash.unproven(written):
		doubt(setBack)
		return FromProfile
	case noted && !last.Emptied && last.At.After(c.Crash.Until):
		return FromProfile
	case noted && !last.Emptied && last.At.After(c.Crash.From):
		doubt("Chrome wrote it as it was read last, so it is as it was read")
	case last.Emptied && had.Items > 0:
		return FromProfile // it was there when it was saved, and was emptied since
	case !noted && had.Items > 0:
		doubt("it is gone without a trace, as of a database that was begun anew, so it is as it was read last")
	case last.Emptied && written.After(c.Crash.Until):
		doubt("whether it was emptied before or after it was read last cannot be told, so it is as it was read")
	}
	return FromDocument
}

// lacksLocal reports whether an item that was read in this very profile is not in
// its database. One that is there and was not read is Chrome's to open as it is.
func (c Copies) lacksLocal(unwritten []string) bool {
	if !c.Document.IsFromDisk(state.ComponentLocalStorage) || c.Found.LocalStorage.Areas == nil && c.uncounted(state.ComponentLocalStorage) {
		return false
	}
	doc := c.Document
	doc.Unwritten = unwritten
	return slices.ContainsFunc(state.BroughtLocal(doc.Written(), append([]state.Area{}, c.Found.LocalStorage.Areas...)),
		func(line state.Component) bool { return line.Dropped > 0 })
}
