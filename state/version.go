package state

import (
	"strconv"
	"strings"

	"github.com/stasisd/stasis/state/report"
)

// Newer reports whether a profile was saved by a newer Chrome than the running one, by
// major version. An unknown version is not newer.
func Newer(saved, running string) bool { return major(saved) > major(running) && major(running) > 0 }

// major returns the first number of a version such as "156.0.8078.79", or 0.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// WithoutDatadir returns the document without its user data directory, for a profile that
// cannot be used.
func (d Document) WithoutDatadir() Document {
	d.Datadir, d.Inventory, d.FromDisk, d.Unwritten, d.Unstored = DatadirNone, nil, nil, nil, nil
	return d
}

// UnusedProfileLines returns the report lines for a profile that is not used because a newer
// Chrome saved it. They count what the profile held and the document cannot restore.
func UnusedProfileLines(doc Document, text string) []Component {
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
