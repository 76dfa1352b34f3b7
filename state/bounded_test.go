package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// A large loss gives a warning, over however many lines it is spread. Items left out on
// purpose are not lost.
func TestMassLosses(t *testing.T) {
	tenth := []state.Component{{Name: "cookies", Saved: 27, Restored: 18, Expired: 3, Dropped: 6}, {Name: "tabs", Saved: 1}}
	if got := state.MassLosses(tenth); len(got) > 0 {
		t.Errorf("%q", got)
	}
	for want, lines := range map[string][]state.Component{
		"cookies: 6 of 10 were lost": {{Name: "cookies", Saved: 4}, {Name: "cookies", Saved: 5, Dropped: 5, Reason: report.Damaged.With("x")}, {Name: "cookies", Saved: 1, Dropped: 1}},
		"":                           {{Name: "cookies", Saved: 5, Dropped: 5, Reason: report.LeftOut.Reason()}, {Name: "passwords", Saved: 1, Dropped: 1, Reason: report.NotInShell.Reason()}, {Name: "datadir", Saved: 1, Dropped: 1}, {Name: "tabs", Saved: 1, Dropped: 1, Reason: report.TabsUnwanted.Reason()}},
	} {
		if got := strings.Join(state.MassLosses(lines), "\n"); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestBoundedDifferences(t *testing.T) {
	var all []state.Difference
	for i := range 300 {
		all = append(all, state.Difference{Component: "cookies", Origin: fmt.Sprint(i), By: []string{state.ByRestore, state.BySite}[i%2], Missing: 2, Changed: 1, Names: []string{"n"}})
	}
	got := state.BoundedDifferences(all)
	sums := map[string]state.Difference{}
	for _, d := range got {
		sum := sums[d.By]
		sum.Missing, sum.Changed, sum.More = sum.Missing+d.Missing, sum.Changed+d.Changed, sum.More+d.More
		sums[d.By] = sum
	}
	want := state.Difference{Missing: 300, Changed: 150, More: 50}
	if diff := cmp.Diff(map[string]state.Difference{state.ByRestore: want, state.BySite: want}, sums); diff != "" || len(got) != 2*report.MaxLines+2 {
		t.Errorf("%d, (-want +got):\n%s", len(got), diff)
	}
}
