package session

import (
	"fmt"

	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// maxLogins bounds how many logins a report lists.
const maxLogins = 100

// boundedReport is the report of a save as it is answered and kept.
func boundedReport(r library.Report) library.Report {
	r.Warnings = append(state.MassLosses(r.Components), r.Warnings...)
	r.Components = report.Bounded(r.Components)
	if more := len(r.Logins) - maxLogins; more > 0 {
		r.Logins = r.Logins[:maxLogins]
		r.Warnings = append([]string{fmt.Sprintf("logins: only the first %d sites are listed; %d more have something like a login", maxLogins, more)}, r.Warnings...)
	}
	if r.Warnings, _ = report.BoundedWarnings(r.Warnings, 0); r.Warnings == nil {
		r.Warnings = []string{}
	}
	return r
}
