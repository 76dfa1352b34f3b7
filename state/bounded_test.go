package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
)

// However many origins there are, a report has few lines, the ones of loss
// before all others, and its sums are those of all of them. Bounding twice, as
// a report that is kept and told again is, changes nothing.
func TestBounded(t *testing.T) {
	var lines []state.Component
	for i := range 1000 {
		line := state.Component{Name: "cookies", Origin: fmt.Sprintf("%04d.example", i), Saved: 3, Restored: 2, Expired: 1}
		if i >= 900 {
			line = state.Component{Name: "cookies", Origin: line.Origin, Saved: 3, Dropped: 3, Reason: "Chrome refused the cookie"}
		}
		if i == 0 || i == 1 {
			line = state.Component{Name: "cookies", Origin: line.Origin, Saved: 3, Restored: 1, Dropped: 2, Reason: "damaged"}
		}
		lines = append(lines, line)
	}
	lines = append(lines, state.Component{Name: "tabs", Saved: 1})
	got := state.Bounded(lines)
	if len(got) != state.MaxLines+2 || got[0].Origin != "0000.example" || got[2].Origin != "0900.example" {
		t.Fatalf("%d lines, the first %+v", len(got), got[:3])
	}
	want := state.Component{Name: "cookies", Saved: 2700, Restored: 1796, Expired: 898, Dropped: 6, More: 900,
		Reason: "and 900 more, added up: Chrome refused the cookie"}
	if diff := cmp.Diff(want, got[len(got)-1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, state.Bounded(got)); diff != "" {
		t.Errorf("twice:\n%s", diff)
	}
	if diff := cmp.Diff([]string{}, append([]string{}, state.MassLosses(lines)...)); diff != "" {
		t.Errorf("a tenth is no mass loss:\n%s", diff)
	}
}

// A large part that was lost is warned of, whatever lines it is spread over;
// what somebody left out on purpose was not lost.
func TestMassLosses(t *testing.T) {
	for want, lines := range map[string][]state.Component{
		"cookies: 6 of 10 were lost": {{Name: "cookies", Saved: 4}, {Name: "cookies", Saved: 5, Dropped: 5, Reason: "x"}, {Name: "cookies", Saved: 1, Dropped: 1}},
		"":                           {{Name: "cookies", Saved: 5, Dropped: 5, Reason: state.LeftOut}, {Name: "passwords", Saved: 1, Dropped: 1, Reason: state.NotInShell}, {Name: "datadir", Saved: 1, Dropped: 1}, {Name: "tabs", Saved: 1, Dropped: 1, Reason: state.TabsUnwanted}},
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
	if diff := cmp.Diff(map[string]state.Difference{state.ByRestore: want, state.BySite: want}, sums); diff != "" || len(got) != 2*state.MaxLines+2 {
		t.Errorf("%d, (-want +got):\n%s", len(got), diff)
	}
}
