package restore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// AddVerification replaces the first counts by better ones and warns of what was not
// restored. The report that was returned earlier does not change.
func TestAddVerification(t *testing.T) {
	first := Report{Verification: VerificationPending, Warnings: []string{"before"}, Components: []state.Component{
		{Name: "indexed_db", Origin: "https://a.example/", Saved: 2, Restored: 1, Dropped: 1, Reason: report.Damaged.With("damaged")}, {Name: "tabs", Saved: 1, Restored: 1}}}
	first.bound()
	restored := first
	site := state.Difference{Component: "cookies", Origin: "a.example", By: state.BySite, Missing: 1, Names: []string{"n"}}
	lost := state.Difference{Component: "indexed_db", Origin: "https://a.example/", By: state.ByRestore, Missing: 2, Names: []string{}}
	better := state.Component{Name: "indexed_db", Origin: "https://a.example/", Saved: 2, Dropped: 2, Reason: report.Damaged.With("damaged")}
	restored.AddVerification(state.Verification{Components: []state.Component{better}, Differences: []state.Difference{site, lost}})
	want := Report{Verification: VerificationMismatch, Components: []state.Component{better, first.Components[1]},
		Differences: []state.Difference{site, lost}, Losses: 1}
	want.Warnings = append(state.MassLosses(want.Components), "before")
	if n := len(restored.Warnings); n != 3 || !strings.HasPrefix(restored.Warnings[2], "indexed_db https://a.example/ ") {
		t.Errorf("%q", restored.Warnings)
	} else {
		want.Warnings = append(want.Warnings, restored.Warnings[2])
	}
	if diff := cmp.Diff(want, restored); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if first.Components[0].Restored != 1 || len(first.Warnings) != 2 {
		t.Errorf("the first report has changed: %+v", first)
	}
	// A line that is not listed is in the sum of the others.
	restored = first
	restored.Components = []state.Component{{Name: "cookies", Saved: 9, Restored: 9, More: 3}}
	restored.AddVerification(state.Verification{Components: []state.Component{{Name: "cookies", Origin: "z.example", Saved: 2, Restored: 1, Expired: 1}}})
	if got := restored.Components; len(got) != 1 || got[0].Saved != 9 || got[0].Restored != 8 || got[0].Expired != 1 {
		t.Errorf("the sum: %+v", got)
	}
	// If that sum has losses, they may be those of the line.
	restored.Components = []state.Component{{Name: "cookies", Saved: 9, Restored: 8, Dropped: 1, More: 3}}
	restored.AddVerification(state.Verification{Components: []state.Component{{Name: "cookies", Origin: "z.example", Saved: 2, Restored: 1, Dropped: 1}}})
	if got := restored.Components; got[0].Restored != 8 || got[0].Dropped != 1 {
		t.Errorf("counted twice: %+v", got)
	}
	restored = first
	restored.AddVerification(state.Verification{Differences: []state.Difference{site}})
	if restored.Verification != VerificationOK || len(restored.Warnings) != 2 || len(restored.Differences) != 1 {
		t.Errorf("a change by the site must not count as a mismatch: %+v", restored)
	}
}
