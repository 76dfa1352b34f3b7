package restore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stasisd/stasis/state"
)

// AddVerification writes the result of a verification into the report.
func (r *Report) AddVerification(v state.Verification) {
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
	warnings := slices.Clone(v.Warnings)
	for _, d := range v.Differences {
		if d.By == state.ByRestore && (d.Component != state.ComponentTabs || d.Missing > 0) { // changed tabs have their own warnings
			warning := fmt.Sprintf("%s was not restored as saved: %d missing, %d changed",
				strings.TrimSpace(d.Component+" "+d.Origin), d.Missing, d.Changed)
			if d.Component == state.ComponentTabs {
				warning += ": " + strings.Join(d.Names, ", ") // tabs have no origin that identifies them
			}
			warnings = append(warnings, warning)
		}
	}
	r.Differences = state.BoundedDifferences(r.Differences)
	r.warn(warnings...)
}

// MarkUnverified records that the verification was not possible. The report stays pending.
func (r *Report) MarkUnverified() {
	r.warn("the restored state could not be verified: it could not be read back from Chrome")
}

// correct replaces one of the first lines by the verification's better one. A line that
// is not listed is in the sum of its kind. It counts there as fully restored, because
// lines with losses are listed first. If the sum has losses too, they may include this
// line's, and the sum stays.
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
