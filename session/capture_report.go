package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// captureReport is what a save tells of the environment, kept with the
// snapshot's record: how much there was of what, and what was not saved.
type captureReport struct {
	Components []state.Component `json:"components"`
	Warnings   []string          `json:"warnings"`
	Logins     []state.Login     `json:"logins"`
	// Damaged: it is a checkpoint with damage in it, of which a session lives again
	// only where it has nothing else.
	Damaged bool `json:"damaged,omitempty"`
}

func captured(j job, doc state.Document, now time.Time) captureReport {
	r := captureReport{Components: state.Captured(doc), Warnings: missed(doc), Logins: state.Logins(doc, now)}
	for _, h := range doc.Inventory {
		if h.Damage != "" {
			r.Warnings = append(r.Warnings, strings.TrimSpace(h.Component+" "+h.Origin)+" is damaged on disk: "+h.Damage)
		}
		if h.Uncounted != "" {
			r.Warnings = append(r.Warnings, strings.TrimSpace(h.Component+" "+h.Origin)+" was saved as it is and not counted: "+h.Uncounted)
		}
	}
	if doc.Partial {
		r.Warnings = append(r.Warnings, "only some origins are in it: the others were left out at the restore or at the save")
	}
	if a := j.arrived; a != nil {
		r.Components = append(sealedIn(r.Components, a.sealed), a.lines...)
		r.Warnings = append(r.Warnings, a.warnings...)
	}
	// The session's files end with it; whoever forgot to fetch them hears of it.
	entries, err := os.ReadDir(j.dir.Files())
	if err == nil && len(entries) > 0 {
		r.Warnings = append(r.Warnings, "the session's files (downloads and uploads) are not part of the environment and were not saved")
	}
	return r.bounded()
}

// sealedIn tells of what a keyring keeps in the lines that counted it already.
func sealedIn(lines, sealed []state.Component) []state.Component {
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

// missed names what a capture could not read. What the profile of a Chrome that
// closed it holds is saved all the same.
func missed(doc state.Document) []string {
	warnings := []string{}
	for _, m := range doc.Missed {
		what := " was not saved: "
		switch {
		case m.Origin == "" && (m.Component == state.ComponentLocalStorage || m.Component == state.ComponentSessionStorage):
			what = " is not whole: "
		case doc.Datadir == state.DatadirClean:
			what = inProfile(doc, m)
		}
		warnings = append(warnings, strings.TrimSpace(m.Component+" "+m.Origin)+what+m.Reason)
	}
	for _, d := range doc.Doubts {
		warnings = append(warnings, strings.TrimSpace(d.Component+" "+d.Origin)+": "+d.Reason)
	}
	for _, key := range doc.Unwritten {
		warnings = append(warnings, state.ComponentLocalStorage+" "+key+" is as it was read before Chrome closed, and is laid into the profile before it is opened again: Chrome ended before it had written it there")
	}
	for _, u := range doc.Unstored {
		what := "; they stay lost, if the site did not clear them itself"
		if u.Lay {
			what = "; a restore lays down what was read"
		}
		warnings = append(warnings, fmt.Sprintf("%s %s: %d items that were read before Chrome closed are not on disk%s", state.ComponentSessionStorage, u.StorageKey, u.Items, what))
	}
	return warnings
}

// untimely tells of each kind how many origins a restore had no time for; its
// report has their names.
func untimely(lines []state.Component) []string {
	late := map[string]int{}
	for _, line := range lines {
		if line.Dropped > 0 && line.Reason.Code == report.NoTime {
			late[line.Name]++
		}
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(late)) {
		warnings = append(warnings, fmt.Sprintf("%s of %d origins did not come back: %s", name, late[name], report.NoTime.Text()))
	}
	return warnings
}

// inProfile says what is known of something that could not be read of a Chrome
// that then closed its profile.
func inProfile(doc state.Document, m state.Missed) string {
	_, damaged := doc.Inventory.Damaged(m.Component)
	switch {
	case m.Component == state.ComponentLocalStorage && !damaged && (m.InProfile == nil || *m.InProfile > 0):
		return " is in the profile alone, which Chrome closed: "
	case m.InProfile == nil:
		return " was not saved: "
	case *m.InProfile == 0:
		return " could not be read, and the profile, which Chrome closed, has nothing of it: "
	case m.Component == state.ComponentHistory:
		return " is in the session files of the profile alone, which Chrome closed: "
	default:
		return fmt.Sprintf(" is in the profile alone, which Chrome closed (items there of all its tabs: %d): ", *m.InProfile)
	}
}

// captureReportOf is the report that a save left; a row without one has none.
func captureReportOf(row profiles.Snapshot) captureReport {
	var r captureReport
	if json.Unmarshal(row.Report, &r) != nil {
		return captureReport{}
	}
	return r
}
