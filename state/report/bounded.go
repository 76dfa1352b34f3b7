package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxLines is the largest number of lines, or differences, that a report has of one
// component. One more line may add up the rest.
const MaxLines = 100

// maxReasons limits how many reasons an added-up line names.
const maxReasons = 3

// Bounded returns the lines of a report with at most [MaxLines] for each component. Lines
// with losses come first. One more line adds up the others, so that the sums stay exact,
// and names the reasons of their losses. Lines that were left out on purpose are no
// losses; they are bounded and added up separately.
func Bounded(lines []Component) []Component {
	if len(lines) <= MaxLines+1 {
		return lines
	}
	of := map[kind][]int{}
	for i, line := range lines {
		k := kind{line.Name, line.purpose()}
		of[k] = append(of[k], i)
	}
	folded := map[kind]*addedUp{}
	keep := make([]bool, len(lines))
	for k, at := range of {
		if len(at) > MaxLines+1 {
			slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(lines[a].rank(), lines[b].rank()) })
			folded[k] = &addedUp{line: Component{Name: k.name}}
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
		out = append(out, folded[k].sumLine(k.purpose))
	}
	return out
}

// kind is what lines are grouped by.
type kind struct {
	name    string
	purpose Code
}

func (k kind) compare(with kind) int {
	return cmp.Or(cmp.Compare(k.name, with.name), cmp.Compare(k.purpose, with.purpose))
}

// rank puts lines that a reader must not miss first. It puts added-up lines last, so that
// they are added up again.
func (c Component) rank() int {
	switch {
	case c.More > 0:
		return 3
	case c.Dropped > 0:
		return 0
	case c.Reason.Code != "":
		return 1
	default:
		return 2
	}
}

// addedUp adds up lines.
type addedUp struct {
	line    Component
	reasons []string
}

func (m *addedUp) add(c Component) {
	m.line.More += max(c.More, 1)
	m.line.Saved += c.Saved
	m.line.Restored += c.Restored
	m.line.Dropped += c.Dropped
	m.line.Expired += c.Expired
	if text := c.Reason.Text; text != "" && len(m.reasons) <= maxReasons && !slices.Contains(m.reasons, text) {
		m.reasons = append(m.reasons, text)
	}
}

func (m *addedUp) sumLine(purpose Code) Component {
	if purpose != "" {
		m.line.Reason = purpose.With(fmt.Sprintf("%s: %d more, added up", purpose.Text(), m.line.More))
		return m.line
	}
	m.line.Reason = AddedUp.With(fmt.Sprintf("and %d more, added up", m.line.More))
	if len(m.reasons) > maxReasons {
		m.reasons[maxReasons] = "other reasons"
	}
	if len(m.reasons) > 0 {
		m.line.Reason.Text += ": " + strings.Join(m.reasons, "; ")
	}
	return m.line
}
