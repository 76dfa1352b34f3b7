package state

import (
	"strings"
	"time"

	"github.com/stasisd/stasis/state/report"
)

// ExpiredSince counts the saved cookies whose time ended while their Chrome was
// parked: a line for each domain that has some. What else is missing from the
// jar the site has removed.
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

// ComparedTabs tells of saved tabs, by target, what became of them in the same
// Chrome: those that are dead were lost, with a line that counts them; those that
// are closed or show something else are as the site, or a client, left them. A
// tab's name is its URL without query and fragment.
func ComparedTabs(saved, open []Tab, dead func(Tab) bool) ([]Component, []Difference) {
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
			lost.differ(shortURL(tab.URL), &tab.URL, nil)
		case there:
			moved.differ(shortURL(tab.URL), &tab.URL, &is.URL)
		default:
			moved.differ(shortURL(tab.URL), &tab.URL, nil)
		}
	}
	var lines []Component
	var differences []Difference
	if lost.some() {
		lines = append(lines, Component{Name: ComponentTabs, Saved: len(saved), Restored: len(saved) - lost.Missing, Dropped: lost.Missing,
			Reason: report.ProcessDied.With("the page's process has died: " + strings.Join(lost.Names, ", "))})
		differences = append(differences, lost)
	}
	if moved.some() {
		differences = append(differences, moved)
	}
	return lines, differences
}
