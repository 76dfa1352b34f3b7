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

// expiredLogins warns of the logins in a restored environment whose expected end
// is past: the sites will ask for them again. A parked Chrome comes without a
// document; then the logins that the save reported count.
func expiredLogins(saved []state.Login, doc state.Document, now time.Time) []string {
	if doc.Complete {
		saved = state.Logins(doc, now)
	}
	var warnings []string
	for _, l := range saved {
		if l = l.At(now); l.Expired {
			warnings = append(warnings, fmt.Sprintf("the login at %s has expired, since %s, as far as its %s tells",
				l.Site, l.ExpectedEnd.Format(time.RFC3339), l.Basis.Text()))
		}
	}
	return warnings
}

// passedOver warns of a checkpoint that is newer than what a session was restored
// from, where the request named the session. That checkpoint is damaged.
func (r *Restorer) passedOver(ctx context.Context, e Environment) []string {
	if e.Source.Type == SourceUserDefault || e.Source.ID != e.Snapshot.SessionID {
		return nil
	}
	newest, err := r.catalogue.NewestSnapshot(ctx, e.Source.ID)
	if err != nil || newest.ID == e.Snapshot.ID || !r.archives.Saved(newest).Damaged {
		return nil
	}
	return []string{fmt.Sprintf("the session's newest checkpoint, %s, is damaged, so this is an earlier one; restore that by its ID to have what can be read of it", newest.ID)}
}

// untimely warns of each kind how many origins a restore had no time for; its
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

// otherEngine is the warning of an environment that another engine saved.
func otherEngine(saved, running string) []string {
	if saved == "" || saved == running {
		return nil
	}
	return []string{"the " + saved + " engine saved this environment, and it runs in the " + running +
		" engine: tabs were reopened by URL, without their back/forward lists"}
}

// unreadCrash is the warning of what came from a Chrome that died before anybody
// read it, "" of all else.
func unreadCrash(doc state.Document) string {
	switch {
	case doc.Datadir != state.DatadirCrash:
		return ""
	case doc.Complete && doc.ReadUntil.IsZero():
		return ""
	case doc.Complete:
		return "Chrome died: of what it had not written there is what was read last, at " + doc.CapturedAt.Format(time.RFC3339) +
			"; what pages changed after that and Chrome had not written is missing"
	}
	if doc.Chrome.Engine == browser.EngineShell {
		return "the shell engine died before this was saved: its session cookies and tabs are lost, and cookies of its last " +
			"30 seconds and storage of its last seconds may be missing"
	}
	return "Chrome died before this was saved: cookies of its last 30 seconds, " +
		"storage of its last seconds, and the newest tabs may be missing"
}
