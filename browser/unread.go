package browser

import (
	"cmp"
	"slices"
	"time"

	"github.com/stasisd/stasis/state"
)

// notTaken is the reason of cookies that lie in the profile and that Chrome
// does not have when it has opened it.
const notTaken = "Chrome did not take it from the profile"

// unreadCookies corrects the lines of a profile whose cookies nobody read over
// CDP: what came back is what Chrome then has, not what its files count.
func (s baseline) unreadCookies(lines []state.Component, now time.Time) []state.Component {
	reasons := map[string]string{}
	for _, c := range s.found.Listed {
		reasons[c.Identity()] = cmp.Or(s.found.Foreign[c.Identity()], notTaken)
	}
	listed := state.CompareCookies(s.found.Listed, s.jar, now, reasons)
	there := map[string]int{}
	for _, c := range s.jar {
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
			line.Reason = cmp.Or(line.Reason, notTaken)
		}
		out = append(out, line)
	}
	return out
}
