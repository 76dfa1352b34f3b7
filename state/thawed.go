package state

import (
	"strings"
	"time"

	"github.com/stasisd/stasis/state/report"
)

// ExpiredSince counts the saved cookies that expired while their Chrome was parked: a
// line for each domain that has some. The site has removed any other cookie that is
// missing from the jar.
func ExpiredSince(saved, jar []Cookie, now time.Time) []Component {
	var lines []Component
	for _, line := range CompareCookies(saved, jar, now, nil) {
		if line.Expired > 0 {
			line.Restored, line.Dropped, line.Reason = line.Saved-line.Expired, 0, report.Reason{}
			lines = append(lines, line)
		}
	}
	return lines
}

// CompareTabs compares saved tabs with the tabs of the same Chrome, by target. Dead tabs
// are lost, and a line counts them. Tabs that were closed or show another page were
// changed by the site or by a client. A tab's name is its URL without query and fragment.
func CompareTabs(saved, open []Tab, dead func(Tab) bool) ([]Component, []Difference) {
	now := map[string]Tab{}
	for _, tab := range open {
		now[tab.TargetID] = tab
	}
	lost := Difference{Component: ComponentTabs, By: ByRestore}
	moved := Difference{Component: ComponentTabs, By: BySite}
	for _, tab := range saved {
		is, there := now[tab.TargetID]
		switch {
		case there && dead(tab):
			lost.differ(ShortURL(tab.URL), &tab.URL, nil)
		case there:
			moved.differ(ShortURL(tab.URL), &tab.URL, &is.URL)
		default:
			moved.differ(ShortURL(tab.URL), &tab.URL, nil)
		}
	}
	var lines []Component
	var differences []Difference
	if lost.hasAny() {
		lines = append(lines, Component{Name: ComponentTabs, Saved: len(saved), Restored: len(saved) - lost.Missing, Dropped: lost.Missing,
			Reason: report.ProcessDied.With("the page's process has died: " + strings.Join(lost.Names, ", "))})
		differences = append(differences, lost)
	}
	if moved.hasAny() {
		differences = append(differences, moved)
	}
	return lines, differences
}
