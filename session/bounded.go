package session

import (
	"fmt"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// The bounds of what a report tells beside its lines ([report.MaxLines]). Sums
// are never lost, and what is not listed is counted.
const (
	maxWarnings = 100
	maxLogins   = 100
)

// boundedWarnings are the first of some warnings, and how many more there are.
func boundedWarnings(all []string) []string {
	if len(all) <= maxWarnings+1 {
		return all
	}
	const rest = "and %d more warnings"
	more := len(all) - maxWarnings
	var before int // they may have been bounded already
	if _, err := fmt.Sscanf(all[maxWarnings], rest, &before); err == nil {
		more += before - 1
	}
	return append(all[:maxWarnings:maxWarnings], fmt.Sprintf(rest, more))
}

// bounded is the report as it is told and kept.
func (r captureReport) bounded() captureReport {
	r.Warnings = append(state.MassLosses(r.Components), r.Warnings...)
	r.Components = report.Bounded(r.Components)
	if more := len(r.Logins) - maxLogins; more > 0 {
		r.Logins = r.Logins[:maxLogins]
		r.Warnings = append([]string{fmt.Sprintf("logins: only the first %d sites are listed; %d more have something like a login", maxLogins, more)}, r.Warnings...)
	}
	if r.Warnings = boundedWarnings(r.Warnings); r.Warnings == nil {
		r.Warnings = []string{}
	}
	return r
}

// bound makes the report one that can be told and kept.
func (r *RestoreReport) bound() {
	r.Warnings = boundedWarnings(append(state.MassLosses(r.Components), r.Warnings...))
	r.Components, r.Differences = report.Bounded(r.Components), state.BoundedDifferences(r.Differences)
}
