package state

import "github.com/stasisd/stasis/state/report"

// leftOutWhole adds to the reason of kinds that cannot be told apart by origin.
const leftOutWhole = ": Chrome keeps it without an origin that it could be told apart by"

// Document is the part of a document that is selected, with a report line for
// each kind and origin that is not. Tabs come back by URL then, without what
// the session files know of them: their back/forward lists would bring the
// others with them.
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
		// What lies in a tab goes with it, of whatever origin it is.
		tab.Session = kept(tab.Session, func(a Area) bool { return has && s.HasKey(a.StorageKey) },
			func(a Area) { drop(ComponentSessionStorage, a.StorageKey, len(a.Items), "") })
		if !has {
			drop(ComponentTabs, originOf(tab.URL), 1, "")
			continue
		}
		if n := len(tab.History) - 1; n > 0 && tab.Current < len(tab.History) {
			drop(ComponentHistory, originOf(tab.URL), n, ": tabs come back by URL, without the lists that other origins may be in")
			tab.History, tab.Current = tab.History[tab.Current:tab.Current+1], 0
		}
		tabs = append(tabs, tab)
	}
	doc.Tabs = tabs
	doc.Inventory = kept(doc.Inventory, s.holds, func(h Holding) {
		if h.Component == ComponentCookies || h.Component == ComponentSessionStorage {
			return // the document's own reading tells
		}
		more := ""
		if h.Origin == "" {
			more = leftOutWhole
		}
		drop(h.Component, h.Origin, h.Items, more)
	})
	doc.Permissions = kept(doc.Permissions, func(g Granted) bool { return s.HasOrigin(g.Origin) && s.HasOrigin(g.EmbeddedOrigin) }, func(Granted) {})
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

// kept is the part of a list that is wanted; of the rest dropped is told.
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

// added adds up lines of one kind, origin and reason, in the order of the
// first of each.
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
