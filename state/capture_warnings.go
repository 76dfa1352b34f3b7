package state

import (
	"fmt"
	"strings"
)

// CaptureWarnings returns a warning for everything that a capture could not read. If
// Chrome closed its profile, the profile's contents are saved all the same.
func CaptureWarnings(doc Document) []string {
	warnings := []string{}
	for _, m := range doc.Missed {
		what := " was not saved: "
		switch {
		case m.Origin == "" && (m.Component == ComponentLocalStorage || m.Component == ComponentSessionStorage):
			what = " is incomplete: "
		case doc.Datadir == DatadirClean:
			what = inProfile(doc, m)
		}
		warnings = append(warnings, strings.TrimSpace(m.Component+" "+m.Origin)+what+m.Reason)
	}
	for _, d := range doc.Doubts {
		warnings = append(warnings, strings.TrimSpace(d.Component+" "+d.Origin)+": "+d.Reason)
	}
	for _, key := range doc.Unwritten {
		warnings = append(warnings, ComponentLocalStorage+" "+key+" was read before Chrome closed, but Chrome exited before it wrote this version to the profile; a restore writes it there before Chrome opens the profile")
	}
	for _, u := range doc.Unstored {
		what := "; they are lost, unless the site itself cleared them"
		if u.Apply {
			what = "; a restore writes the items that were read"
		}
		warnings = append(warnings, fmt.Sprintf("%s %s: %d items that were read before Chrome closed are not on disk%s", ComponentSessionStorage, u.StorageKey, u.Items, what))
	}
	return warnings
}

// inProfile says what the profile holds of something that the capture could not read, if
// Chrome then closed the profile.
func inProfile(doc Document, m Missed) string {
	_, damaged := doc.Inventory.Damaged(m.Component)
	switch {
	case m.Component == ComponentLocalStorage && !damaged && (m.InProfile == nil || *m.InProfile > 0):
		return " is saved only in the profile, which Chrome closed: "
	case m.InProfile == nil:
		return " was not saved: "
	case *m.InProfile == 0:
		return " could not be read and is not in the profile, which Chrome closed: "
	case m.Component == ComponentHistory:
		return " is saved only in the session files of the profile, which Chrome closed: "
	default:
		return fmt.Sprintf(" is saved only in the profile, which Chrome closed (items there of all its tabs: %d): ", *m.InProfile)
	}
}
