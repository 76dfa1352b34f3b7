package restore

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
)

// A restored tab that has shown nothing yet keeps its saved address, history and title, whatever
// Chrome gives for it meanwhile. A tab that shows another page has its own.
func TestPendingTabs(t *testing.T) {
	was := state.Tab{URL: "https://a.example/slow", Title: "slow", History: []state.HistoryEntry{{URL: "https://a.example/"}, {URL: "https://a.example/slow"}}, Current: 1}
	other := state.Tab{URL: "https://b.example/", Title: "other", History: []state.HistoryEntry{{URL: "https://b.example/"}}}
	blank := []state.HistoryEntry{{URL: blankURL}}
	for name, c := range map[string]struct {
		read    state.Tab
		pending bool
	}{
		"no address":   {state.Tab{}, true},
		"blank":        {state.Tab{URL: blankURL, History: blank}, true},
		"loading":      {state.Tab{URL: was.URL, History: blank}, true},
		"another page": {other, false},
	} {
		want := other
		if c.pending {
			want = was
			want.Unloaded = true
		}
		var p PendingTabs
		p.add("1", was)
		want.TargetID, c.read.TargetID = "1", "1"
		tabs := []state.Tab{c.read}
		if unwritten := p.Complete(tabs); unwritten != c.pending {
			t.Errorf("%s: pending: %v, want %v", name, unwritten, c.pending)
		}
		if diff := cmp.Diff(want, tabs[0]); diff != "" {
			t.Errorf("%s: the tab (-want +got):\n%s", name, diff)
		}
	}
}
