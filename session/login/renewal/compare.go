package renewal

import (
	"context"
	"slices"

	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// missingParts names what was not restored of a default and a save would therefore lose; ""
// for nothing.
func missingParts(up restore.Files) string {
	if up.ProfileUnused() {
		return "a newer Chrome saved its profile"
	}
	for _, line := range up.Components {
		if line.Dropped > 0 && (line.Name == state.ComponentExtensions || line.Reason.Code == report.NoTime) {
			return line.Name + ": " + line.Reason.Text
		}
	}
	return ""
}

// newlyMissed names what could be read before and cannot be read now; "" for nothing.
func newlyMissed(before, now state.Document) string {
	for _, m := range now.Missed {
		if !slices.ContainsFunc(before.Missed, func(was state.Missed) bool { return was.Component == m.Component && was.Origin == m.Origin }) {
			return m.Component + " could not be read: " + m.Reason
		}
	}
	return ""
}

// loginComponents lists the components that can hold a login. Other changes are not worth a
// snapshot.
var loginComponents = []string{state.ComponentCookies, state.ComponentLocalStorage, state.ComponentSessionStorage, state.ComponentIndexedDB,
	state.ComponentIndexedDBRecords, state.ComponentPasskeys, state.ComponentExtensionStorage}

// loginChanged reports whether a component that can hold a login has changed or could not
// be compared.
func loginChanged(ctx context.Context, before, now state.Document) bool {
	changes, unseen, err := state.Diff(ctx, before, now, true)
	return err != nil || slices.ContainsFunc(changes, func(c state.Change) bool { return slices.Contains(loginComponents, c.Name) }) ||
		slices.ContainsFunc(unseen, func(u state.Uncompared) bool { return slices.Contains(loginComponents, u.Name) })
}
