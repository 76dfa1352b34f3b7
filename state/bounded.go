package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxLines bounds how many lines a report has of one component, and how many
// differences, beside the one that adds up the others.
const MaxLines = 100

// maxReasons bounds how many reasons a line names that stands for others.
const maxReasons = 3

// Bounded are the lines of a report with at most [MaxLines] of each component:
// those by which something was lost, else the first ones. The others are added
// up in one line, so that the sums stay exact; what was lost by them is named
// by its reasons. What was not to come is bounded and added up by itself, for it
// was not lost.
func Bounded(lines []Component) []Component {
	if len(lines) <= MaxLines+1 {
		return lines
	}
	of := map[kind][]int{}
	for i, line := range lines {
		k := kind{line.Name, line.purpose()}
		of[k] = append(of[k], i)
	}
	folded := map[kind]*more{}
	keep := make([]bool, len(lines))
	for k, at := range of {
		if len(at) > MaxLines+1 {
			slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(lines[a].rank(), lines[b].rank()) })
			folded[k] = &more{line: Component{Name: k.name}}
			for _, i := range at[MaxLines:] {
				folded[k].add(lines[i])
			}
			at = at[:MaxLines]
		}
		for _, i := range at {
			keep[i] = true
		}
	}
	out := make([]Component, 0, min(len(lines), (MaxLines+1)*len(of)))
	for i, line := range lines {
		if keep[i] {
			out = append(out, line)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(folded), kind.compare) {
		out = append(out, folded[k].told(k.purpose))
	}
	return out
}

// kind is what lines are added up by.
type kind struct{ name, purpose string }

func (k kind) compare(with kind) int {
	return cmp.Or(cmp.Compare(k.name, with.name), cmp.Compare(k.purpose, with.purpose))
}

// rank puts the lines that a reader must not miss first, and lines that stand
// for others last, so that they are added up again.
func (c Component) rank() int {
	switch {
	case c.More > 0:
		return 3
	case c.Dropped > 0:
		return 0
	case c.Reason != "":
		return 1
	default:
		return 2
	}
}

// more adds lines up.
type more struct {
	line    Component
	reasons []string
}

func (m *more) add(c Component) {
	m.line.More += max(c.More, 1)
	m.line.Saved += c.Saved
	m.line.Restored += c.Restored
	m.line.Dropped += c.Dropped
	m.line.Expired += c.Expired
	if c.Reason != "" && len(m.reasons) <= maxReasons && !slices.Contains(m.reasons, c.Reason) {
		m.reasons = append(m.reasons, c.Reason)
	}
}

func (m *more) told(purpose string) Component {
	if purpose != "" {
		m.line.Reason = fmt.Sprintf("%s: %d more, added up", purpose, m.line.More)
		return m.line
	}
	m.line.Reason = fmt.Sprintf("and %d more, added up", m.line.More)
	if len(m.reasons) > maxReasons {
		m.reasons[maxReasons] = "other reasons"
	}
	if len(m.reasons) > 0 {
		m.line.Reason += ": " + strings.Join(m.reasons, "; ")
	}
	return m.line
}

// BoundedDifferences are the first [MaxLines] differences of each component and
// maker; the others are added up in one, without names.
func BoundedDifferences(all []Difference) []Difference {
	n := map[[2]string]int{}
	folded := map[[2]string]int{} // where it is
	out := []Difference{}
	for _, d := range all {
		of := [2]string{d.Component, d.By}
		if n[of]++; n[of] <= MaxLines {
			out = append(out, d)
			continue
		}
		at, begun := folded[of]
		if !begun {
			at = len(out)
			folded[of], out = at, append(out, Difference{Component: d.Component, By: d.By, Names: []string{}})
		}
		sum := &out[at]
		sum.More += max(d.More, 1)
		sum.Missing, sum.Changed, sum.Added = sum.Missing+d.Missing, sum.Changed+d.Changed, sum.Added+d.Added
	}
	return out
}

// ofSites are the components whose loss somebody would notice at a site.
var ofSites = []string{ComponentCookies, ComponentLocalStorage, ComponentSessionStorage, ComponentTabs, ComponentIndexedDB, ComponentIndexedDBRecords,
	ComponentCacheStorage, ComponentServiceWorkers, ComponentFileSystem, ComponentPasswords, ComponentPasskeys}

// MassLosses names the components of which a report says that half or more was
// lost. What was not to come was not lost.
func MassLosses(lines []Component) []string {
	saved, dropped := map[string]int{}, map[string]int{}
	for _, line := range lines {
		if !line.OnPurpose() {
			saved[line.Name] += line.Saved
			dropped[line.Name] += line.Dropped
		}
	}
	var told []string
	for _, name := range ofSites {
		if n := dropped[name]; n > 0 && 2*n >= saved[name] {
			told = append(told, fmt.Sprintf("%s: %d of %d were lost; the report's lines say why", name, n, saved[name]))
		}
	}
	return told
}
