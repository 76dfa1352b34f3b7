package session

import (
	"fmt"
	"slices"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// The bounds of what a report tells beside its lines ([report.MaxLines]). Sums
// are never lost, and what is not listed is counted.
const (
	maxWarnings = 100
	maxLogins   = 100
)

// boundedWarnings are the first of some warnings, and one that counts the others.
// It also returns how many those are. unlisted is how many more were counted before.
func boundedWarnings(all []string, unlisted int) ([]string, int) {
	if len(all) <= maxWarnings+1 && unlisted == 0 {
		return all, 0
	}
	listed := min(len(all), maxWarnings)
	unlisted += len(all) - listed
	return append(all[:listed:listed], fmt.Sprintf("and %d more warnings", unlisted)), unlisted
}

// bounded is the report as it is told and kept.
func (r captureReport) bounded() captureReport {
	r.Warnings = append(state.MassLosses(r.Components), r.Warnings...)
	r.Components = report.Bounded(r.Components)
	if more := len(r.Logins) - maxLogins; more > 0 {
		r.Logins = r.Logins[:maxLogins]
		r.Warnings = append([]string{fmt.Sprintf("logins: only the first %d sites are listed; %d more have something like a login", maxLogins, more)}, r.Warnings...)
	}
	if r.Warnings, _ = boundedWarnings(r.Warnings, 0); r.Warnings == nil {
		r.Warnings = []string{}
	}
	return r
}

// bound makes the report one that can be told and kept.
func (r *RestoreReport) bound() {
	r.warn()
	r.Components, r.Differences = report.Bounded(r.Components), state.BoundedDifferences(r.Differences)
}

// warn adds warnings, and makes those of mass losses anew from the lines as they
// are now.
func (r *RestoreReport) warn(more ...string) {
	all := slices.Clone(r.Warnings)
	if r.Unlisted > 0 {
		all = all[:len(all)-1] // the count comes last
	}
	losses := state.MassLosses(r.Components)
	all = slices.Concat(losses, all[r.Losses:], more)
	r.Losses = len(losses)
	r.Warnings, r.Unlisted = boundedWarnings(all, r.Unlisted)
}
