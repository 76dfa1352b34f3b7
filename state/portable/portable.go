// Package portable writes state documents in the formats of other tools, and
// reads them: Playwright's storageState, Puppeteer's cookies, and cookies.txt.
//
// Every function also returns losses: what the writer's format cannot hold, or what the
// reader's document does not accept. Input in another format is an invalid_import. The
// message holds the JSON path or the line, and never a value.
package portable

import (
	"fmt"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Loss is something that was not converted.
type Loss struct {
	Component string `json:"component"` // as in reports
	Origin    string `json:"origin"`    // "" if it has none
	Count     int    `json:"count"`     // of items
	Reason    string `json:"reason"`
}

// Attributes of cookies, as components of a [Loss].
const (
	sameSite = "cookie_same_site"
	priority = "cookie_priority"
	source   = "cookie_source" // scheme and port
	// UnknownField is a field that the format does not have.
	UnknownField = "unknown_field"
	// MisspeltPart is an unknown field at the top of a file whose name is similar to that of
	// a part that the file lacks.
	MisspeltPart = "misspelt_part"
)

// losses counts what was not converted, in the order of first occurrence.
type losses struct {
	order []Loss
	at    map[Loss]int
}

func (l *losses) add(component, origin string, n int, reason string) {
	if n == 0 {
		return
	}
	key := Loss{Component: component, Origin: origin, Reason: reason}
	i, known := l.at[key]
	if !known {
		if l.at == nil {
			l.at = map[Loss]int{}
		}
		i = len(l.order)
		l.at[key], l.order = i, append(l.order, key)
	}
	l.order[i].Count += n
}

// list never returns nil, so that no losses are [] in JSON.
func (l *losses) list() []Loss {
	if l.order == nil {
		return []Loss{}
	}
	return l.order
}

// tabs counts what only tabs have.
func (l *losses) tabs(doc state.Document) {
	l.add(state.ComponentOverrides, "", len(doc.Overrides.Names()), "the format has no overrides")
	const reason = "the format has no tabs"
	l.add(state.ComponentTabs, "", len(doc.Tabs), reason)
	for _, tab := range doc.Tabs {
		l.add(state.ComponentHistory, "", max(len(tab.History)-1, 0), reason)
		if tab.Name != "" {
			l.add(state.ComponentWindowName, "", 1, reason)
		}
		for _, area := range tab.Session {
			l.add(state.ComponentSessionStorage, area.StorageKey, len(area.Items), reason)
		}
	}
}

// datadir counts what the profile held and the document does not.
func (l *losses) datadir(doc state.Document) {
	has := map[[2]string]bool{}
	for _, area := range doc.Local {
		has[[2]string{state.ComponentLocalStorage, area.StorageKey}] = true
	}
	for _, d := range doc.IndexedDB {
		has[[2]string{state.ComponentIndexedDB, d.Origin + "/"}] = true
		has[[2]string{state.ComponentIndexedDBRecords, d.Origin + "/"}] = true
	}
	read := doc.Complete // over CDP: then the document has the cookies and the tabs
	for _, h := range doc.Inventory {
		switch {
		case has[[2]string{h.Component, h.Origin}], h.Items == 0 && h.Uncounted == "":
		case read && (h.Component == state.ComponentCookies || h.Component == state.ComponentSessionStorage):
		case h.Component == state.ComponentCookies, h.Component == state.ComponentLocalStorage:
			l.add(h.Component, h.Origin, max(h.Items, 1), "it is in the profile and was not read when the snapshot was made")
		case h.Component == state.ComponentIndexedDB || h.Component == state.ComponentIndexedDBRecords:
			l.add(h.Component, h.Origin, max(h.Items, 1), "it is in the profile: only playwright with indexed_db=true reads it from there")
		default:
			l.add(h.Component, h.Origin, max(h.Items, 1), "the format cannot hold it")
		}
	}
}

// storage counts what a cookies-only format cannot hold.
func (l *losses) storage(doc state.Document) {
	const reason = "the format has cookies only"
	for _, area := range doc.Local {
		l.add(state.ComponentLocalStorage, area.StorageKey, len(area.Items), reason)
	}
	for _, d := range doc.IndexedDB {
		l.add(state.ComponentIndexedDB, d.Origin, d.Records(), reason)
	}
	l.tabs(doc)
	l.datadir(doc)
}

// document returns the document that a reader fills in.
func document() state.Document {
	return state.Document{SchemaVersion: state.SchemaVersion, Datadir: state.DatadirNone, Complete: true,
		Cookies: []state.Cookie{}, Local: []state.Area{}, Tabs: []state.Tab{}}
}

func invalid(format string, args ...any) error {
	return fault.New(fault.InvalidImport, "portable.read", "%s", fmt.Sprintf(format, args...))
}

// origin returns the origin of an unpartitioned storage key.
func origin(storageKey string) string { return strings.TrimSuffix(storageKey, "/") }

// partitioned reports whether a storage key belongs to a frame below another site.
func partitioned(storageKey string) bool { return strings.Contains(storageKey, "^") }
