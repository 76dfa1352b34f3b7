package state

import (
	"strconv"
	"strings"

	"github.com/stasisd/stasis/state/report"
)

// Newer reports whether a profile that one version of Chrome saved is too new
// for another: the major version is higher. An unknown version is not.
func Newer(saved, running string) bool { return major(saved) > major(running) && major(running) > 0 }

// major is the first number of a version such as "156.0.8078.79", 0 without one.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// Alone is the document without its datadir: of a profile that cannot be used.
func (d Document) Alone() Document {
	d.Datadir, d.Inventory, d.FromDisk, d.Unwritten, d.Unstored = DatadirNone, nil, nil, nil, nil
	return d
}

// LeftBehind are the report lines of what a profile that is not used, for a newer
// Chrome saved it, held beside what the document can lay down.
func LeftBehind(doc Document, text string) []Component {
	var lines []Component
	for _, h := range doc.Inventory {
		if overCDP(doc, h) || h.Component == ComponentPreferences {
			continue
		}
		line := h.line()
		line.Dropped, line.Reason = line.Saved, report.NewerProfile.With(text)
		lines = append(lines, line)
	}
	return lines
}
