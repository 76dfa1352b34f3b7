package baseline

import (
	"cmp"
	"slices"
	"time"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// UnreadCookies corrects the report lines of a profile whose cookies were not read over
// CDP. The cookies that Chrome has after loading it count as restored, not the number in
// its files.
func (b *Baseline) UnreadCookies(lines []state.Component, now time.Time) []state.Component {
	reasons := map[string]report.Reason{}
	for _, c := range b.Found.AllCookies {
		reasons[c.Identity()] = report.NotTaken.Reason()
		if why := b.Found.UnreadableCookies[c.Identity()]; why != "" {
			reasons[c.Identity()] = report.OtherKey.With(why)
		}
	}
	listed := state.CompareCookies(b.Found.AllCookies, b.Jar, now, reasons)
	there := map[string]int{}
	for _, c := range b.Jar {
		there[c.Origin()]++
	}
	out := slices.Clone(listed)
	for _, line := range lines {
		if line.Name != state.ComponentCookies {
			out = append(out, line)
			continue
		}
		if slices.ContainsFunc(listed, func(c state.Component) bool { return c.Origin == line.Origin }) {
			continue
		}
		line.Restored = min(line.Saved, there[line.Origin])
		if line.Dropped = line.Saved - line.Restored; line.Dropped > 0 {
			line.Reason = cmp.Or(line.Reason, report.NotTaken.Reason())
		}
		out = append(out, line)
	}
	return out
}
