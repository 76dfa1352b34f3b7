package state

import (
	"cmp"
	"slices"

	"github.com/stasisd/stasis/state/report"
)

// Holding is how much a profile at rest held of one kind, counted on disk and
// without Chrome (browser/profile/inspect).
type Holding struct {
	Component string `json:"component"`        // as in the reports
	Origin    string `json:"origin,omitempty"` // "" where the kind has none
	Items     int    `json:"items"`
	// Damage says what of it could not be read; Items is what is left.
	Damage string `json:"damage,omitempty"`
	// Uncounted says why Items is not known: that is neither whole nor lost.
	Uncounted string `json:"uncounted,omitempty"`
}

// Inventory has the holdings of a profile, sorted by component and origin.
type Inventory []Holding

// Sort puts the inventory into its order.
func (i Inventory) Sort() {
	slices.SortFunc(i, Holding.compare)
}

// With has the other inventory's holdings in place of its own of the components
// of settings.
func (i Inventory) With(settings Inventory) Inventory {
	all := slices.DeleteFunc(slices.Clone(i), func(h Holding) bool { return slices.Contains(inSettings, h.Component) })
	for _, h := range settings {
		if slices.Contains(inSettings, h.Component) {
			all = append(all, h)
		}
	}
	all.Sort()
	return all
}

// inSettings are the components that lie in Chrome's settings file.
var inSettings = []string{ComponentPreferences, ComponentContentSettings, ComponentZoom}

// Of finds the holding of a component and origin.
func (i Inventory) Of(component, origin string) (Holding, bool) {
	at, there := slices.BinarySearchFunc(i, Holding{Component: component, Origin: origin}, Holding.compare)
	if !there {
		return Holding{}, false
	}
	return i[at], true
}

// compare is the order of an inventory.
func (h Holding) compare(other Holding) int {
	return cmp.Or(cmp.Compare(h.Component, other.Component), cmp.Compare(h.Origin, other.Origin))
}

// Damaged reports whether anything of a component was found damaged, and says
// what.
func (i Inventory) Damaged(component string) (string, bool) {
	for _, h := range i {
		if h.Component == component && h.Damage != "" {
			return h.Damage, true
		}
	}
	return "", false
}

// Uncounted reports whether all of a component was not counted, and says why:
// nothing tells then which origins there are.
func (i Inventory) Uncounted(component string) (string, bool) {
	h, _ := i.Of(component, "")
	return h.Uncounted, h.Uncounted != ""
}

// line begins a report's line of the holding.
func (h Holding) line() Component {
	return Component{Name: h.Component, Origin: h.Origin, Saved: h.Items}
}

// reason says what is to be known of a holding that is not simply whole.
func (h Holding) reason() report.Reason {
	switch {
	case h.Uncounted != "":
		return report.NotCounted.With("not counted: " + h.Uncounted)
	case h.Damage != "":
		return report.Damaged.With("damaged on disk (" + h.Damage + "); counted is what can be read")
	default:
		return report.Reason{}
	}
}
