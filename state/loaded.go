package state

import (
	"slices"

	"github.com/stasisd/stasis/state/report"
)

// LoadedLines compares a profile's inventory before Chrome opens it with the inventory when
// it was archived. It returns lines of a restore report for the kinds that CDP cannot
// read. Without a saved inventory, it takes what was found as what was saved.
func LoadedLines(doc Document, found Inventory) []Component {
	saved := doc.Inventory
	if saved == nil {
		saved = found
	}
	lines := []Component{}
	damages := map[string]string{} // damage text by component
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
			is.Damage = damages[h.Component] // the damage covers this origin too
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
			line.Dropped, line.Reason = line.Saved, report.SettingsReset.With("the profile's settings could not be read, so Chrome started with default settings")
		default:
			line.Restored = min(line.Saved, is.Items)
			line.Dropped = line.Saved - line.Restored
			switch {
			case is.Damage != "":
				line.Reason = report.Damaged.With("damaged on disk (" + is.Damage + "); Chrome keeps what it can read, or starts with empty storage")
			case line.Dropped > 0:
				line.Reason = report.NotUnpacked.With("not in the unpacked files")
			}
		}
		lines = append(lines, line)
	}
	for _, h := range found { // holdings that the saved inventory does not have
		if _, known := saved.Of(h.Component, h.Origin); !known && !overCDP(doc, h) && (h.Damage != "" && h.Origin != "" || h.Uncounted != "") {
			lines = append(lines, Component{Name: h.Component, Origin: h.Origin, Reason: h.reason()})
		}
	}
	return lines
}

// LoadedLocalStorageLines returns the lines for the localStorage that the profile itself
// restores: the document's items that its files have. A nil found means that the files
// were not read; then nothing is counted.
func LoadedLocalStorageLines(doc Document, found []Area) []Component {
	on := map[string]Area{}
	for _, area := range found {
		on[area.StorageKey] = area
	}
	lines := []Component{}
	for _, area := range doc.Local {
		if found == nil {
			lines = append(lines, Component{Name: ComponentLocalStorage, Origin: area.StorageKey, Reason: report.NotCounted.With("not counted: it was restored with the profile, whose localStorage was not read")})
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
