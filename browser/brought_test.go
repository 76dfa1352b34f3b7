package browser

import (
	"fmt"
	"testing"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// What a selection left out is no mismatch: not what Chrome keeps without an
// origin, and not where a report adds many origins up. What was damaged is one.
func TestNotBrought(t *testing.T) {
	doc := state.Document{Inventory: state.Inventory{{Component: state.ComponentBookmarks, Items: 2}}}
	for i := range 2 * report.MaxLines {
		doc.Inventory = append(doc.Inventory, state.Holding{Component: state.ComponentIndexedDB, Origin: fmt.Sprintf("https://%03d.test/", i), Items: 1})
	}
	_, lines := state.Selection{Include: []string{"https://a.test"}}.Document(doc)
	if len(lines) != 2*report.MaxLines+1 {
		t.Fatalf("%d lines", len(lines))
	}
	lines = append(lines, state.Component{Name: state.ComponentIndexedDB, Origin: "https://a.test/", Saved: 3, Dropped: 3, Reason: report.Damaged.With("damaged")})
	got := notBrought(report.Bounded(lines), nil, false)
	if len(got) != 1 || got[0].Origin != "https://a.test/" || got[0].Missing != 3 {
		t.Errorf("%+v", got)
	}
}
