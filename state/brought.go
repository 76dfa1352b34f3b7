package state

import (
	"slices"

	"github.com/stasisd/stasis/state/report"
)

// Brought compares what a profile holds before Chrome reads it with what it
// held when it was archived, as lines of a restore report for the kinds that
// no reading over CDP tells of. Without a saved inventory what is found is what
// was saved.
func Brought(doc Document, found Inventory) []Component {
	saved := doc.Inventory
	if saved == nil {
		saved = found
	}
	lines := []Component{}
	damages := map[string]string{} // by component
	for _, h := range found {
		if damages[h.Component] == "" {
			damages[h.Component] = h.Damage
		}
	}
	reset := damages[ComponentPreferences] != ""
	for _, h := range saved {
		if overCDP(doc, h) {
			continue
		}
		is, there := found.Of(h.Component, h.Origin)
		if !there {
			is.Damage = damages[h.Component] // what was lost with it had this origin
		}
		if why, uncounted := found.Uncounted(h.Component); !there && uncounted {
			is.Uncounted = why
		}
		line := h.line()
		switch {
		case h.Uncounted != "" || is.Uncounted != "":
			line = Component{Name: h.Component, Origin: h.Origin, Reason: report.NotCounted.With("not counted: " + h.Uncounted + is.Uncounted)}
			if h.Uncounted != "" && is.Uncounted != "" {
				line.Reason = h.reason()
			}
		case reset && slices.Contains(inSettings, h.Component):
			line.Dropped, line.Reason = line.Saved, report.SettingsReset.With("the profile's settings could not be read, so Chrome began with its own")
		default:
			line.Restored = min(line.Saved, is.Items)
			line.Dropped = line.Saved - line.Restored
			switch {
			case is.Damage != "":
				line.Reason = report.Damaged.With("damaged on disk (" + is.Damage + "); Chrome keeps what it can read, or begins anew")
			case line.Dropped > 0:
				line.Reason = report.NotUnpacked.With("not in the files as they were unpacked")
			}
		}
		lines = append(lines, line)
	}
	for _, h := range found { // what nobody had counted
		if _, known := saved.Of(h.Component, h.Origin); !known && !overCDP(doc, h) && (h.Damage != "" && h.Origin != "" || h.Uncounted != "") {
			lines = append(lines, Component{Name: h.Component, Origin: h.Origin, Reason: h.reason()})
		}
	}
	return lines
}

// BroughtLocal are the lines of the localStorage that a profile itself brings
// back: what of the document's items is in its files. Files that were not read
// (nil) tell of nothing: what they bring is not counted.
func BroughtLocal(doc Document, found []Area) []Component {
	on := map[string]Area{}
	for _, area := range found {
		on[area.StorageKey] = area
	}
	lines := []Component{}
	for _, area := range doc.Local {
		if found == nil {
			lines = append(lines, Component{Name: ComponentLocalStorage, Origin: area.StorageKey, Reason: report.NotCounted.With("not counted: it came with the profile, whose localStorage was not read")})
			continue
		}
		missing := area.Missing(on[area.StorageKey])
		line := Component{Name: ComponentLocalStorage, Origin: area.StorageKey,
			Saved: len(area.Items), Restored: len(area.Items) - missing, Dropped: missing}
		if missing > 0 {
			line.Reason = report.NotInProfile.Reason()
		}
		lines = append(lines, line)
	}
	return lines
}
