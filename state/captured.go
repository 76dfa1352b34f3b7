package state

import (
	"maps"
	"slices"
	"strings"

	"github.com/stasisd/stasis/state/report"
)

// CaptureLines counts a document's contents as lines of a capture report: saved is set, and
// nothing is restored yet. The report names origins, so it is as private as the
// document's sealed part.
func CaptureLines(doc Document) []Component {
	lines := []Component{}
	byDomain := map[string]int{}
	for _, c := range doc.Cookies {
		byDomain[c.Origin()]++
	}
	for domain, n := range byDomain {
		lines = append(lines, Component{Name: ComponentCookies, Origin: domain, Saved: n})
	}
	slices.SortFunc(lines, func(a, b Component) int { return strings.Compare(a.Origin, b.Origin) })
	for _, area := range doc.Local {
		lines = append(lines, Component{Name: ComponentLocalStorage, Origin: area.StorageKey, Saved: len(area.Items)})
	}
	session := map[string]int{}
	names := 0
	for _, tab := range doc.Tabs {
		for _, area := range tab.Session {
			session[area.StorageKey] += len(area.Items)
		}
		if tab.Name != "" {
			names++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(session)) {
		lines = append(lines, Component{Name: ComponentSessionStorage, Origin: key, Saved: session[key]})
	}
	tabs := Component{Name: ComponentTabs, Saved: len(doc.Tabs)}
	if (!doc.Complete || doc.TabsOnDisk) && doc.Datadir != DatadirNone {
		tabs.Reason = report.NotCounted.With("not counted: only the profile's session files have them")
	}
	lines = append(lines, tabs)
	if names > 0 {
		lines = append(lines, Component{Name: ComponentWindowName, Saved: names})
	}
	for _, d := range doc.IndexedDB {
		lines = append(lines, Component{Name: ComponentIndexedDB, Origin: d.Origin + "/", Saved: len(d.Databases)},
			Component{Name: ComponentIndexedDBRecords, Origin: d.Origin + "/", Saved: d.Records()})
	}
	if n := len(doc.Overrides.Names()); n > 0 {
		lines = append(lines, Component{Name: ComponentOverrides, Saved: n})
	}
	if n := len(doc.Permissions); n > 0 {
		lines = append(lines, Component{Name: ComponentPermissions, Saved: n})
	}
	for _, e := range doc.Extensions {
		lines = append(lines, Component{Name: ComponentExtensions, Origin: e.Origin(), Saved: 1})
		if len(e.Session) > 0 {
			lines = append(lines, Component{Name: ComponentExtensionStorage, Origin: e.Origin(), Saved: len(e.Session)})
		}
	}
	lines = append(lines, doc.Passkeys.Lines()...)
	return append(lines, doc.Inventory.captured(doc)...)
}

// captured returns the lines of what only the profile has, not the document.
func (i Inventory) captured(doc Document) []Component {
	var lines []Component
	for _, h := range i {
		if line := h.line(); !inDocument(doc, h) {
			line.Reason = h.reason()
			lines = append(lines, line)
		}
	}
	return lines
}

// inDocument reports whether the document itself has what a holding counts.
func inDocument(doc Document, h Holding) bool { return doc.IsFromDisk(h.Component) || overCDP(doc, h) }

// overCDP reports whether the document has what a holding counts, as read over CDP.
func overCDP(doc Document, h Holding) bool {
	switch h.Component {
	case ComponentCookies, ComponentSessionStorage:
		return doc.Complete
	case ComponentLocalStorage:
		return doc.Complete && (h.Origin == "" && h.Uncounted == "" || slices.ContainsFunc(doc.Local, func(a Area) bool { return a.StorageKey == h.Origin }))
	default:
		return false
	}
}
