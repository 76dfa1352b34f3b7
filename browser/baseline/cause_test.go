package baseline

import (
	"slices"
	"testing"

	"github.com/stasisd/stasis/state"
)

// A missing item that a script applied counts as the site's change only if Chrome
// reported it as stored in every tab of the URL.
func TestWasApplied(t *testing.T) {
	const url, key = "https://a.example/x", "https://a.example/"
	area := state.Area{StorageKey: key, Items: []state.Item{{Key: "one"}, {Key: "two"}}}
	tab := state.Tab{URL: url, Session: []state.Area{area}}
	held := func(stored ...string) ScriptedTab {
		t := ScriptedTab{URL: url, Stored: map[string]map[string]bool{key: {}}}
		for _, name := range stored {
			t.Stored[key][name] = true
		}
		return t
	}
	for name, test := range map[string]struct {
		tabs []ScriptedTab
		want []state.Item
	}{
		"stored":             {[]ScriptedTab{held("one", "two")}, area.Items},
		"one of them":        {[]ScriptedTab{held("two")}, area.Items[1:]},
		"not in another tab": {[]ScriptedTab{held("one", "two"), held("two")}, area.Items[1:]},
		"no tab":             {nil, nil},
	} {
		var b Baseline
		b.NoteByScript(true)
		b.NoteScripted(test.tabs)
		if got := b.SessionBefore(t.TempDir())(tab, area); !slices.Equal(got.Items, test.want) {
			t.Errorf("%s: items before the page ran: %v, want %v", name, got.Items, test.want)
		}
	}
}
