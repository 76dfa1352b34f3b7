package profile

import (
	"slices"
	"time"

	"github.com/stasisd/stasis/state"
)

// writeTime bounds the time that Chrome needs, on any usable machine, to write what it
// has collected. So a write that ends later than this after a reading also began after
// it, and contains everything that the reading has.
const writeTime = 2 * time.Second

// tabs decides where the tabs come from: the session files, or the document.
func (v *Verdict) tabs(c Copies) {
	doc := c.Document
	switch {
	case c.Crash != nil:
		v.tabsAfterCrash(c)
	case doc.Complete && !doc.TabsOnDisk && (!c.closed() || doc.TabsByURL):
		v.Tabs = FromDocument
	}
}

// tabsAfterCrash takes the session files if they are newer than the reading. If they were
// written just after it, they must also name every tab that was read.
func (v *Verdict) tabsAfterCrash(c Copies) {
	written := c.Crash.Written.Tabs
	v.Tabs = FromDocument
	switch {
	case c.Document.TabsByURL: // its session files are from an earlier version of Chrome
	case c.Crash.unproven(written):
		v.Tabs = FromProfile
		v.doubt(state.ComponentTabs, "", clockSetBack)
	case c.Crash.justWritten(written) && slices.ContainsFunc(c.Document.Tabs, func(t state.Tab) bool { return t.URL != "about:blank" && !c.Crash.Sessions.Names(t.URL) }):
	case written.After(c.Crash.Until):
		v.Tabs = FromProfile
	}
}

// justWritten reports whether the session files were written so soon after the reading
// that their time does not show what they contain.
func (c *Crash) justWritten(written time.Time) bool {
	return written.After(c.Until) && !written.After(c.Until.Add(writeTime))
}

// sessionStorage decides about the tabs' sessionStorage, separately for each storage key.
func (v *Verdict) sessionStorage(c Copies) {
	found := c.Found.SessionStorage
	switch {
	case c.Crash != nil:
		v.sessionAfterCrash(c)
	case c.closed() && !c.Document.TabsByURL: // otherwise tabs get theirs from the document
		if v.Unstored = found.Unstored(c.Document.Tabs); found.Truncated && len(v.Unstored) == 0 {
			v.Truncated = append(v.Truncated, state.ComponentSessionStorage)
		}
		there := found.Items()
		for _, u := range v.Unstored {
			if u.Apply && there[u.StorageKey] > 0 {
				v.Forget[u.StorageKey] = true // a script applies an area only if the tab has none
			}
		}
	case c.unread() && found.Truncated:
		v.Truncated = append(v.Truncated, state.ComponentSessionStorage)
	}
	if c.closed() && c.Document.Complete {
		_, v.Broken.SessionStorage = c.Found.Inventory.Damaged(state.ComponentSessionStorage)
	}
}

// sessionAfterCrash takes the newer copy of each tab's sessionStorage. Comparing with
// what was on disk at the reading shows whether Chrome has written a storage key since.
func (v *Verdict) sessionAfterCrash(c Copies) {
	tabs := c.Document.Tabs
	holders := map[string]int{} // number of tabs with a storage key
	for _, tab := range tabs {
		for _, area := range tab.Session {
			holders[area.StorageKey]++
		}
	}
	v.Session = make([][]state.Area, len(tabs))
	for i, tab := range tabs {
		for _, area := range tab.Session {
			if given, some := v.areaAfterCrash(c, area, holders[area.StorageKey] == 1); some {
				v.Session[i] = append(v.Session[i], given)
			}
		}
	}
}

// areaAfterCrash decides about one tab's sessionStorage of a storage key. alone: no other
// tab has that key. It returns what the tab gets from the document, if anything.
func (v *Verdict) areaAfterCrash(c Copies, read state.Area, alone bool) (given state.Area, some bool) {
	on := c.Found.SessionStorage
	var since [][]state.Item
	known := true
	if c.Crash.sessionWritten() {
		since, known = on.WrittenSince(c.Crash.SessionStorageAtReading, read.StorageKey)
	}
	switch {
	case known && len(since) == 1 && alone: // the profile's is newer
		return state.Area{StorageKey: read.StorageKey, Items: since[0]}, v.Tabs == FromDocument
	case v.Tabs == FromProfile && on.Has(read):
		return state.Area{}, false // Chrome restores it
	case known && len(since) == 0, on.Has(read):
	default:
		v.doubt(state.ComponentSessionStorage, read.StorageKey,
			"it is unknown whether Chrome wrote this tab's data after Stasis last read it over CDP, so the data is that which Stasis read")
	}
	if v.Tabs == FromProfile {
		v.Forget[read.StorageKey] = true
	}
	return read, true
}

// sessionWritten reports whether any sessionStorage may have been written since the
// reading.
func (c *Crash) sessionWritten() bool {
	return c.Written.SessionStorage.After(c.From) || c.unproven(c.Written.SessionStorage)
}
