package state

import (
	"fmt"
	"strings"
)

// CaptureWarnings name what a capture could not read. What the profile of a Chrome that
// closed it holds is saved all the same.
func CaptureWarnings(doc Document) []string {
	warnings := []string{}
	for _, m := range doc.Missed {
		what := " was not saved: "
		switch {
		case m.Origin == "" && (m.Component == ComponentLocalStorage || m.Component == ComponentSessionStorage):
			what = " is not whole: "
		case doc.Datadir == DatadirClean:
			what = inProfile(doc, m)
		}
		warnings = append(warnings, strings.TrimSpace(m.Component+" "+m.Origin)+what+m.Reason)
	}
	for _, d := range doc.Doubts {
		warnings = append(warnings, strings.TrimSpace(d.Component+" "+d.Origin)+": "+d.Reason)
	}
	for _, key := range doc.Unwritten {
		warnings = append(warnings, ComponentLocalStorage+" "+key+" is as it was read before Chrome closed, and is laid into the profile before it is opened again: Chrome ended before it had written it there")
	}
	for _, u := range doc.Unstored {
		what := "; they stay lost, if the site did not clear them itself"
		if u.Lay {
			what = "; a restore lays down what was read"
		}
		warnings = append(warnings, fmt.Sprintf("%s %s: %d items that were read before Chrome closed are not on disk%s", ComponentSessionStorage, u.StorageKey, u.Items, what))
	}
	return warnings
}

// inProfile says what is known of something that could not be read of a Chrome
// that then closed its profile.
func inProfile(doc Document, m Missed) string {
	_, damaged := doc.Inventory.Damaged(m.Component)
	switch {
	case m.Component == ComponentLocalStorage && !damaged && (m.InProfile == nil || *m.InProfile > 0):
		return " is in the profile alone, which Chrome closed: "
	case m.InProfile == nil:
		return " was not saved: "
	case *m.InProfile == 0:
		return " could not be read, and the profile, which Chrome closed, has nothing of it: "
	case m.Component == ComponentHistory:
		return " is in the session files of the profile alone, which Chrome closed: "
	default:
		return fmt.Sprintf(" is in the profile alone, which Chrome closed (items there of all its tabs: %d): ", *m.InProfile)
	}
}
