package verify

import (
	"fmt"
	"testing"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// What a selection left out is not a difference: neither state without an origin, nor
// origins that a report sums up. Damaged state is one.
func TestNotRestored(t *testing.T) {
	doc := state.Document{Inventory: state.Inventory{{Component: state.ComponentBookmarks, Items: 2}}}
	for i := range 2 * report.MaxLines {
		doc.Inventory = append(doc.Inventory, state.Holding{Component: state.ComponentIndexedDB, Origin: fmt.Sprintf("https://%03d.test/", i), Items: 1})
	}
	_, lines := state.Selection{Include: []string{"https://a.test"}}.Document(doc)
	if len(lines) != 2*report.MaxLines+1 {
		t.Fatalf("%d lines", len(lines))
	}
	lines = append(lines, state.Component{Name: state.ComponentIndexedDB, Origin: "https://a.test/", Saved: 3, Dropped: 3, Reason: report.Damaged.With("damaged")})
	got := notRestored(report.Bounded(lines), nil, false)
	if len(got) != 1 || got[0].Origin != "https://a.test/" || got[0].Missing != 3 {
		t.Errorf("%+v", got)
	}
}

// A cookie that was not restored is a difference, in a profile that was not read when it
// was saved.
func TestNotRestoredCookiesOfUnreadProfile(t *testing.T) {
	lines := []state.Component{
		{Name: state.ComponentCookies, Origin: "a.example", Saved: 2, Restored: 1, Dropped: 1, Reason: report.OtherKey.With("sealed")},
		{Name: state.ComponentCookies, Origin: "b.example", Saved: 1, Expired: 1},
		{Name: state.ComponentHistory, Saved: 3, Restored: 3},
	}
	if d := notRestored(lines, nil, true); len(d) != 1 || d[0].Origin != "a.example" || d[0].Missing != 1 || d[0].By != state.ByRestore {
		t.Errorf("differences: %+v", d)
	}
}
