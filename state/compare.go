package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/state/report"
)

// CompareCookies counts, for each domain, how many of the saved cookies are in a jar. A
// saved cookie that is missing has expired or was dropped. reasons maps cookie identities
// to the reason for the drop, if it is known. A cookie with another value counts as
// restored, because the site changed it.
func CompareCookies(saved, jar []Cookie, now time.Time, reasons map[string]report.Reason) []Component {
	there := map[string]bool{}
	for _, c := range jar {
		there[c.Identity()] = true
	}
	lines := map[string]*Component{}
	for _, c := range saved {
		line := lines[c.Origin()]
		if line == nil {
			line = &Component{Name: ComponentCookies, Origin: c.Origin()}
			lines[c.Origin()] = line
		}
		line.Saved++
		switch {
		case there[c.Identity()]:
			line.Restored++
		case c.Expired(now):
			line.Expired++
		default:
			line.Dropped++
			line.Reason = cmp.Or(reasons[c.Identity()], c.unsettable(), report.NotInProfile.Reason())
		}
	}
	out := make([]Component, 0, len(lines))
	for _, line := range lines {
		out = append(out, *line)
	}
	slices.SortFunc(out, func(a, b Component) int { return strings.Compare(a.Origin, b.Origin) })
	return out
}

// ExpiredIn updates the cookie lines of an earlier report. It counts the cookies of that
// report's jar that have expired since.
func ExpiredIn(report []Component, jar []Cookie, now time.Time) []Component {
	over := map[string]int{}
	for _, c := range jar {
		if c.Expired(now) {
			over[c.Origin()]++
		}
	}
	report = slices.Clone(report)
	for i, line := range report {
		if line.Name == ComponentCookies {
			n := min(over[line.Origin], line.Restored)
			report[i].Restored -= n
			report[i].Expired += n
		}
	}
	return report
}

// unsettable returns the reason why no Chrome accepts the cookie, or the zero Reason.
func (c Cookie) unsettable() report.Reason {
	if why := c.Unsettable(); why != "" {
		return report.Unsettable.With(why)
	}
	return report.Reason{}
}
