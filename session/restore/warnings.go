package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// expiredLogins warns of the logins in a restored environment whose expected end has
// passed: the sites will ask for them again. A parked Chrome has no document here, so the
// logins that the save reported count.
func expiredLogins(saved []state.Login, doc state.Document, now time.Time) []string {
	if doc.Complete {
		saved = state.Logins(doc, now)
	}
	var warnings []string
	for _, l := range saved {
		if l = l.At(now); l.Expired {
			warnings = append(warnings, fmt.Sprintf("the login at %s expired on %s, according to its %s",
				l.Site, l.ExpectedEnd.Format(time.RFC3339), l.Basis.Text()))
		}
	}
	return warnings
}

// skippedCheckpoint warns if the request named a session and its newest checkpoint was not
// restored because that is damaged.
func (r *Restorer) skippedCheckpoint(ctx context.Context, e Environment) []string {
	if e.Source.Type == SourceUserDefault || e.Source.ID != e.Snapshot.SessionID {
		return nil
	}
	newest, err := r.catalogue.NewestSnapshot(ctx, e.Source.ID)
	if err != nil || newest.ID == e.Snapshot.ID || !r.archives.SaveReport(newest).Damaged {
		return nil
	}
	return []string{fmt.Sprintf("the session's newest checkpoint, %s, is damaged, so an earlier one was restored; to get the readable part of the damaged one, restore it by its ID", newest.ID)}
}

// timedOut warns, for each kind of state, of how many origins a restore had no time for.
// The report lists their names.
func timedOut(lines []state.Component) []string {
	late := map[string]int{}
	for _, line := range lines {
		if line.Dropped > 0 && line.Reason.Code == report.NoTime {
			late[line.Name]++
		}
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(late)) {
		warnings = append(warnings, fmt.Sprintf("%s of %d origins was not restored: %s", name, late[name], report.NoTime.Text()))
	}
	return warnings
}

// shortLists warns if at least half of the entries of the tabs' back/forward lists were not
// restored, although their tabs were.
func shortLists(lines []state.Component) []string {
	for _, line := range lines {
		if line.Name == state.ComponentHistory && line.Reason.Code == report.ListNotRestored && 2*line.Dropped >= line.Saved {
			return []string{fmt.Sprintf("%d of %d entries of the tabs' back/forward lists were not restored: %s", line.Dropped, line.Saved, line.Reason.Text)}
		}
	}
	return nil
}

// otherEngine warns that another engine saved the environment.
func otherEngine(saved, running string) []string {
	if saved == "" || saved == running {
		return nil
	}
	return []string{"the " + saved + " engine saved this environment, but the session runs in the " + running +
		" engine: tabs were reopened by URL, without their back/forward lists"}
}

// unreadCrash warns of what may be missing because Chrome died before its state could be
// read; "" if that does not apply.
func unreadCrash(doc state.Document) string {
	switch {
	case doc.Datadir != state.DatadirCrash:
		return ""
	case doc.Complete && doc.ReadUntil.IsZero():
		return ""
	case doc.Complete:
		return "Chrome died before it wrote everything to disk; Stasis last read its state at " + doc.CapturedAt.Format(time.RFC3339) +
			"; later changes are missing if Chrome had not written them"
	}
	if doc.Chrome.Engine == browser.EngineShell {
		return "the shell engine died before its state could be read: its session cookies and tabs are lost, and cookies of its last " +
			"30 seconds and storage of its last seconds may be missing"
	}
	return "Chrome died before its state could be read: cookies of its last 30 seconds, " +
		"storage of its last seconds, and the newest tabs may be missing"
}
