package restore

import (
	"slices"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// tabReport counts which of the saved tabs were restored.
type tabReport struct {
	saved                []state.Tab
	byScript             bool             // sessionStorage is applied by script, not restored by Chrome
	unstored             []state.Unstored // what the profile lacks although it has the tabs
	lost                 report.Reason    // why a tab is missing
	short                report.Reason    // why a restored tab lacks entries of its back/forward list
	tabs, history, names state.Component
	storage              []state.Component
}

// add records whether the i-th saved tab was restored. entries counts its restored
// back/forward list without the page that it shows.
func (r *tabReport) add(i int, back bool, entries int) {
	tab := r.saved[i]
	count(&r.tabs, 1, back, r.lost)
	if saved := len(tab.History) - 1; saved > 0 {
		entries = min(entries, saved)
		count(&r.history, entries, true, report.Reason{})
		if back {
			count(&r.history, saved-entries, false, r.short)
		} else {
			count(&r.history, saved, false, r.lost)
		}
	}
	if tab.Name != "" {
		count(&r.names, 1, back, r.lost)
	}
	for _, area := range tab.Session {
		line := state.Component{Name: state.ComponentSessionStorage, Origin: area.StorageKey}
		if _, named := state.ParseStorageKey(area.StorageKey); back && r.byScript && !named {
			count(&line, len(area.Items), false, report.Unnamed.With("its storage key has a nonce or an opaque site, so no new page can have it"))
		} else {
			count(&line, len(area.Items), back, r.lost)
		}
		if back {
			r.lacking(area, &line)
		}
		r.storage = append(r.storage, line)
	}
}

// lacking corrects the report line of an area that the profile has only in part.
func (r *tabReport) lacking(area state.Area, line *state.Component) {
	i := slices.IndexFunc(r.unstored, func(u state.Unstored) bool { return u.StorageKey == area.StorageKey })
	switch {
	case i < 0:
	case r.unstored[i].Apply:
		line.Reason = report.FromDocument.Reason()
	default:
		n := min(r.unstored[i].Items, line.Restored)
		r.unstored[i].Items -= n
		line.Restored -= n
		line.Dropped += n
		line.Reason = report.NotInProfile.Reason()
	}
}

func count(line *state.Component, n int, back bool, reason report.Reason) {
	line.Saved += n
	if back {
		line.Restored += n
		return
	}
	if line.Dropped += n; n > 0 {
		line.Reason = reason
	}
}

func (r *tabReport) lines() []state.Component {
	r.tabs.Name, r.history.Name, r.names.Name = state.ComponentTabs, state.ComponentHistory, state.ComponentWindowName
	lines := []state.Component{r.tabs}
	for _, line := range append([]state.Component{r.history, r.names}, r.storage...) {
		if line.Saved > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}
