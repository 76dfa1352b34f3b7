package restore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stasisd/stasis/state"
)

// Verified puts a verification's outcome into the report.
func (r *Report) Verified(v state.Verification) {
	r.Verification = VerificationOK
	if !v.OK() {
		r.Verification = VerificationMismatch
	}
	first := r.Components
	r.Components = slices.Clone(first)
	for _, better := range v.Components {
		r.correct(first, better)
	}
	r.Differences = append([]state.Difference{}, v.Differences...)
	var warnings []string
	for _, d := range v.Differences {
		if d.By == state.ByRestore {
			warning := fmt.Sprintf("%s did not come back as saved: %d missing, %d changed",
				strings.TrimSpace(d.Component+" "+d.Origin), d.Missing, d.Changed)
			if d.Component == state.ComponentTabs {
				warning += ": " + strings.Join(d.Names, ", ") // they have no origin to be known by
			}
			warnings = append(warnings, warning)
		}
	}
	r.Differences = state.BoundedDifferences(r.Differences)
	r.warn(warnings...)
}

// Unverified says that nobody could look: the report stays pending.
func (r *Report) Unverified() {
	r.warn("what came back could not be verified: Chrome did not let it be read back")
}

// correct puts a better line in the place of one of the first. One that is not
// listed is among those that are added up: as restored whole, for what was
// dropped is listed first. Where the sum too had something dropped, the line's
// may be in it already, and the sum stays.
func (r *Report) correct(first []state.Component, better state.Component) {
	own := slices.IndexFunc(r.Components, func(c state.Component) bool {
		return c.Name == better.Name && c.Origin == better.Origin && c.More == 0
	})
	sum := slices.IndexFunc(r.Components, func(c state.Component) bool { return c.Name == better.Name && c.More > 0 && !c.OnPurpose() })
	switch {
	case own >= 0:
		r.Components[own] = better
	case sum >= 0 && first[sum].Dropped == 0:
		r.Components[sum].Restored -= better.Dropped + better.Expired
		r.Components[sum].Dropped += better.Dropped
		r.Components[sum].Expired += better.Expired
	}
}
