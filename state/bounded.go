package state

import (
	"fmt"

	"github.com/stasisd/stasis/state/report"
)

// BoundedDifferences returns the first [report.MaxLines] differences of each component
// and maker. It adds up the others in one more difference without names.
func BoundedDifferences(all []Difference) []Difference {
	n := map[[2]string]int{}
	rest := map[[2]string]int{} // index of the difference that adds up the others
	out := []Difference{}
	for _, d := range all {
		of := [2]string{d.Component, d.By}
		if n[of]++; n[of] <= report.MaxLines {
			out = append(out, d)
			continue
		}
		at, begun := rest[of]
		if !begun {
			at = len(out)
			rest[of], out = at, append(out, Difference{Component: d.Component, By: d.By, Names: []string{}})
		}
		sum := &out[at]
		sum.More += max(d.More, 1)
		sum.Missing, sum.Changed, sum.Added = sum.Missing+d.Missing, sum.Changed+d.Changed, sum.Added+d.Added
	}
	return out
}

// ofSites lists the components whose loss a user would notice at a site.
var ofSites = []string{ComponentCookies, ComponentLocalStorage, ComponentSessionStorage, ComponentTabs, ComponentIndexedDB, ComponentIndexedDBRecords,
	ComponentCacheStorage, ComponentServiceWorkers, ComponentFileSystem, ComponentPasswords, ComponentPasskeys}

// MassLosses returns a warning for each component of which at least half was lost. Items
// that were left out on purpose are not lost.
func MassLosses(lines []Component) []string {
	saved, dropped := map[string]int{}, map[string]int{}
	for _, line := range lines {
		if !line.OnPurpose() {
			saved[line.Name] += line.Saved
			dropped[line.Name] += line.Dropped
		}
	}
	var warnings []string
	for _, name := range ofSites {
		if n := dropped[name]; n > 0 && 2*n >= saved[name] {
			warnings = append(warnings, fmt.Sprintf("%s: %d of %d were lost; the report's lines say why", name, n, saved[name]))
		}
	}
	return warnings
}
