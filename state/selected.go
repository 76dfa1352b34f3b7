package state

import "github.com/stasisd/stasis/state/report"

// leftOutWhole is added to the reason of kinds that have no origins.
const leftOutWhole = ": Chrome stores it without an origin, so it cannot be filtered by origin"

// Document returns the selected part of a document, and a report line for each kind and
// origin that is left out. Tabs are then restored by URL, without the back/forward lists
// of the session files, because those lists may contain other origins.
func (s Selection) Document(doc Document) (Document, []Component) {
	if s.All() {
		return doc, nil
	}
	var lines []Component
	drop := func(name, origin string, n int, more string) {
		if n > 0 {
			lines = append(lines, Component{Name: name, Origin: origin, Saved: n, Dropped: n, Reason: report.LeftOut.With(report.LeftOut.Text() + more)})
		}
	}
	doc.TabsByURL = true
	doc.Cookies = kept(doc.Cookies, s.HasCookie, func(c Cookie) { drop(ComponentCookies, c.Origin(), 1, "") })
	doc.Local = kept(doc.Local, func(a Area) bool { return s.HasKey(a.StorageKey) }, func(a Area) {
		if _, counted := doc.Inventory.Of(ComponentLocalStorage, a.StorageKey); !counted {
			drop(ComponentLocalStorage, a.StorageKey, len(a.Items), "")
		}
	})
	doc.Unwritten = kept(doc.Unwritten, s.HasKey, func(string) {})
	doc.Unstored = kept(doc.Unstored, func(u Unstored) bool { return s.HasKey(u.StorageKey) }, func(Unstored) {})
	tabs := []Tab{}
	for _, tab := range doc.Tabs {
		has := s.HasOrigin(tab.URL)
		// What belongs to a tab goes with it, whatever its origin.
		tab.Session = kept(tab.Session, func(a Area) bool { return has && s.HasKey(a.StorageKey) },
			func(a Area) { drop(ComponentSessionStorage, a.StorageKey, len(a.Items), "") })
		if !has {
			drop(ComponentTabs, originOf(tab.URL), 1, "")
			continue
		}
		if n := len(tab.History) - 1; n > 0 && tab.Current < len(tab.History) {
			drop(ComponentHistory, originOf(tab.URL), n, ": tabs are restored by URL, because their lists may contain other origins")
			tab.History, tab.Current = tab.History[tab.Current:tab.Current+1], 0
		}
		tabs = append(tabs, tab)
	}
	doc.Tabs = tabs
	doc.Inventory = kept(doc.Inventory, s.holds, func(h Holding) {
		if h.Component == ComponentCookies || h.Component == ComponentSessionStorage {
			return // the document itself has the exact state
		}
		more := ""
		if h.Origin == "" {
			more = leftOutWhole
		}
		drop(h.Component, h.Origin, h.Items, more)
	})
	doc.Permissions = kept(doc.Permissions, func(g PermissionGrant) bool { return s.HasOrigin(g.Origin) && s.HasOrigin(g.EmbeddedOrigin) }, func(PermissionGrant) {})
	doc.Passkeys.Credentials = kept(doc.Passkeys.Credentials, func(c Passkey) bool { return s.HasDomain(c.RPID) },
		func(c Passkey) { drop(ComponentPasskeys, c.RPID, 1, "") })
	doc.Missed = kept(doc.Missed, func(m Missed) bool { return m.Origin == "" || s.HasOrigin(m.Origin) }, func(Missed) {})
	return doc, added(lines)
}

// holds reports whether a holding on disk is selected.
func (s Selection) holds(h Holding) bool {
	switch h.Component {
	case ComponentCookies:
		return s.HasDomain(h.Origin)
	case ComponentSessionStorage, ComponentVisited, ComponentBookmarks, ComponentAutofill, ComponentZoom, ComponentHSTS:
		return false
	case ComponentLocalStorage, ComponentIndexedDB, ComponentIndexedDBRecords, ComponentCacheStorage, ComponentServiceWorkers,
		ComponentFileSystem, ComponentStorageBuckets:
		return h.Origin != "" && s.HasKey(h.Origin)
	case ComponentPasswords:
		return h.Origin != "" && s.HasOrigin(h.Origin)
	case ComponentContentSettings:
		return s.HasPattern(h.Origin)
	default:
		return true
	}
}

// kept returns the wanted items of a list and calls dropped for each of the others.
func kept[T any](all []T, wanted func(T) bool, dropped func(T)) []T {
	if all == nil {
		return nil
	}
	out := make([]T, 0, len(all))
	for _, v := range all {
		if wanted(v) {
			out = append(out, v)
		} else {
			dropped(v)
		}
	}
	return out
}

// added adds up lines with the same kind, origin and reason, in order of first
// occurrence.
func added(lines []Component) []Component {
	out := lines[:0]
	type group struct {
		name, origin string
		code         report.Code
	}
	at := map[group]int{}
	for _, line := range lines {
		of := group{line.Name, line.Origin, line.Reason.Code}
		i, begun := at[of]
		if !begun {
			at[of] = len(out)
			out = append(out, line)
			continue
		}
		out[i].Saved += line.Saved
		out[i].Dropped += line.Dropped
	}
	return out
}
