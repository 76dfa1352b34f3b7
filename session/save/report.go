package save

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// newReport returns the report of a save, as it is answered and stored.
func newReport(j Job, doc state.Document, now time.Time) library.Report {
	r := library.Report{Components: state.CaptureLines(doc), Warnings: state.CaptureWarnings(doc), Logins: state.Logins(doc, now)}
	for _, h := range doc.Inventory {
		switch h.Damage {
		case "":
		case state.NotWritten:
			r.Warnings = append(r.Warnings, strings.TrimSpace(h.Component+" "+h.Origin)+" had not been written yet: Chrome ended before it wrote the database")
		default:
			r.Warnings = append(r.Warnings, strings.TrimSpace(h.Component+" "+h.Origin)+" is damaged on disk: "+h.Damage)
		}
		if h.Uncounted != "" {
			r.Warnings = append(r.Warnings, strings.TrimSpace(h.Component+" "+h.Origin)+" was saved unchanged but not counted: "+h.Uncounted)
		}
	}
	if doc.Partial {
		r.Warnings = append(r.Warnings, "the snapshot has only some origins; the restore or the save left out the others")
	}
	if a := j.Import; a != nil {
		r.Components = append(markSealed(r.Components, a.Sealed), a.Lines...)
		r.Warnings = append(r.Warnings, a.Warnings...)
	}
	// The session's files are removed with the session, which a caller may not expect.
	entries, err := os.ReadDir(j.Dir.Files())
	if err == nil && len(entries) > 0 {
		r.Warnings = append(r.Warnings, "the session's files (downloads and uploads) are not part of the environment and were not saved")
	}
	return boundedReport(r)
}

// markSealed marks what only a keyring can decrypt as dropped: in the lines that count it
// already, or in new lines.
func markSealed(lines, sealed []state.Component) []state.Component {
	at := map[[2]string]int{}
	for i, line := range lines {
		at[[2]string{line.Name, line.Origin}] = i
	}
	for _, l := range sealed {
		i, counted := at[[2]string{l.Name, l.Origin}]
		if !counted {
			lines = append(lines, l)
			continue
		}
		lines[i].Saved = max(lines[i].Saved, l.Saved)
		lines[i].Dropped, lines[i].Reason = l.Dropped, l.Reason
	}
	return lines
}

// maxLogins is how many logins a report lists at most.
const maxLogins = 100

// boundedReport returns the report with no more lines than an answer may have.
func boundedReport(r library.Report) library.Report {
	r.Warnings = append(state.MassLosses(r.Components), r.Warnings...)
	r.Components = report.Bounded(r.Components)
	if more := len(r.Logins) - maxLogins; more > 0 {
		r.Logins = r.Logins[:maxLogins]
		r.Warnings = append([]string{fmt.Sprintf("logins: only the first %d sites are listed; %d more seem to have a login", maxLogins, more)}, r.Warnings...)
	}
	if r.Warnings, _ = report.BoundedWarnings(r.Warnings, 0); r.Warnings == nil {
		r.Warnings = []string{}
	}
	return r
}
