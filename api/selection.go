package api

import (
	"fmt"
	"strings"

	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/state"
)

// maxEntries limits each list of a selection.
const maxEntries = 256

// selectionBody is a selection of origins.
type selectionBody struct {
	Include []string `json:"include"`
	Exclude []string `json:"exclude"`
}

func (b selectionBody) check(name string) error {
	return firstOf(areEntries(join(name, "include"), b.Include), areEntries(join(name, "exclude"), b.Exclude))
}

func areEntries(name string, list []string) error {
	if len(list) > maxEntries {
		return invalid(name, "must have at most %d entries", maxEntries)
	}
	for i, entry := range list {
		if err := state.CheckEntry(entry); err != nil {
			return invalid(fmt.Sprintf("%s[%d]", name, i), "%s %s", quoted(entry), err)
		}
	}
	return nil
}

func (b selectionBody) selection() state.Selection {
	return state.Selection{Include: b.Include, Exclude: b.Exclude}
}

// checkSelection refuses a selection if nothing is restored, and for a session that is shared,
// because others use all its origins.
func (b *createBody) checkSelection() error {
	switch {
	case b.Origins.selection().All():
		return nil
	case b.OnLive == string(request.OnLiveShare):
		return invalid("origins", "must not be given together with on_live share")
	case b.FromSession == "" && b.FromEnvironment == "" && b.FromDefaultOf == "":
		return invalid("origins", "needs something to restore: restore_from_session_id, restore_from_environment_id or restore_default_environment_from_user_id")
	}
	return nil
}

// splitList splits a parameter at its commas.
func splitList(parameter string) []string {
	if parameter == "" {
		return nil
	}
	return strings.Split(parameter, ",")
}

// join returns the path of a field: "origins.include".
func join(above, name string) string {
	if above == "" {
		return name
	}
	return above + "." + name
}
