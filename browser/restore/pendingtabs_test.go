package restore

import (
	"testing"

	"github.com/stasisd/stasis/state"
)

// A restored tab that has shown nothing yet keeps its saved address, whatever Chrome gives for it
// meanwhile. A tab that shows another page has its own.
func TestPendingTabs(t *testing.T) {
	const saved = "https://a.example/slow"
	blank := []state.HistoryEntry{{URL: blankURL}}
	for name, c := range map[string]struct {
		read state.Tab
		want string
	}{
		"no address":      {state.Tab{URL: ""}, saved},
		"blank":           {state.Tab{URL: blankURL, History: blank}, saved},
		"loading":         {state.Tab{URL: saved, History: blank}, saved},
		"an address only": {state.Tab{URL: "https://b.example/", History: blank}, "https://b.example/"},
		"another page":    {state.Tab{URL: "https://b.example/", History: []state.HistoryEntry{{URL: "https://b.example/"}}}, "https://b.example/"},
	} {
		var p PendingTabs
		p.add("1", state.Tab{URL: saved})
		tabs := []state.Tab{c.read}
		tabs[0].TargetID = "1"
		if p.Complete(tabs); tabs[0].URL != c.want {
			t.Errorf("%s: the tab is read at %q, want %q", name, tabs[0].URL, c.want)
		}
	}
}
