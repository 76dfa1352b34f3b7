package state

import (
	"cmp"
	"slices"

	"github.com/stasisd/stasis/state/report"
)

// Holding counts what a closed profile held of one kind. It is counted on disk, without
// Chrome (browser/profile/inspect).
type Holding struct {
	Component string `json:"component"`        // as in the reports
	Origin    string `json:"origin,omitempty"` // "" if the kind has no origins
	Items     int    `json:"items"`
	// Damage says what could not be read. Items counts the rest.
	Damage string `json:"damage,omitempty"`
	// Uncounted says why Items is not known. The contents then count as neither restored
	// nor lost.
	Uncounted string `json:"uncounted,omitempty"`
}

// NotWritten is the damage of a database that is empty, as in the profile of a Chrome that was
// killed soon after its start. What it should have held is missing, as after other damage.
const NotWritten = "the database had not been written yet"

// Inventory lists the holdings of a profile, sorted by component and origin.
type Inventory []Holding

// Sort sorts the inventory by component and origin.
func (i Inventory) Sort() {
	slices.SortFunc(i, Holding.compare)
}

// With returns the inventory with its components of Chrome's settings file replaced by
// those of settings.
func (i Inventory) With(settings Inventory) Inventory { return i.Replaced(settings, inSettings...) }

// Replaced returns the inventory with these components replaced by those of another one.
func (i Inventory) Replaced(by Inventory, components ...string) Inventory {
	all := slices.DeleteFunc(slices.Clone(i), func(h Holding) bool { return slices.Contains(components, h.Component) })
	for _, h := range by {
		if slices.Contains(components, h.Component) {
			all = append(all, h)
		}
	}
	all.Sort()
	return all
}

// inSettings lists the components that are in Chrome's settings file.
var inSettings = []string{ComponentPreferences, ComponentContentSettings, ComponentZoom}

// Has reports whether the profile has anything of a component.
func (i Inventory) Has(component string) bool {
	return slices.ContainsFunc(i, func(h Holding) bool { return h.Component == component })
}

// Of returns the holding of a component and origin.
func (i Inventory) Of(component, origin string) (Holding, bool) {
	at, there := slices.BinarySearchFunc(i, Holding{Component: component, Origin: origin}, Holding.compare)
	if !there {
		return Holding{}, false
	}
	return i[at], true
}

// compare defines the order of an inventory.
func (h Holding) compare(other Holding) int {
	return cmp.Or(cmp.Compare(h.Component, other.Component), cmp.Compare(h.Origin, other.Origin))
}

// Damaged reports whether any holding of a component is damaged, and returns the damage.
func (i Inventory) Damaged(component string) (string, bool) {
	for _, h := range i {
		if h.Component == component && h.Damage != "" {
			return h.Damage, true
		}
	}
	return "", false
}

// Uncounted reports whether a component was not counted at all, and why. Its origins are
// then unknown.
func (i Inventory) Uncounted(component string) (string, bool) {
	h, _ := i.Of(component, "")
	return h.Uncounted, h.Uncounted != ""
}

// line returns a report line with the holding's component and origin.
func (h Holding) line() Component {
	return Component{Name: h.Component, Origin: h.Origin, Saved: h.Items}
}

// reason returns the reason for a holding that is damaged or uncounted, else the zero
// Reason.
func (h Holding) reason() report.Reason {
	switch {
	case h.Uncounted != "":
		return report.NotCounted.With("not counted: " + h.Uncounted)
	case h.Damage != "":
		return report.Damaged.With("damaged on disk (" + h.Damage + "); only readable items are counted")
	default:
		return report.Reason{}
	}
}
