package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/state/report"
)

// A report has few lines, whatever the number of origins. Lines with losses come first,
// and the sums are exact. Bounding again changes nothing, because a stored report is
// bounded again when it is read.
func TestBounded(t *testing.T) {
	var lines []report.Component
	for i := range 1000 {
		line := report.Component{Name: "cookies", Origin: fmt.Sprintf("%04d.example", i), Saved: 3, Restored: 2, Expired: 1}
		if i >= 900 {
			line = report.Component{Name: "cookies", Origin: line.Origin, Saved: 3, Dropped: 3, Reason: report.Refused.With("Chrome refused the cookie")}
		}
		if i == 0 || i == 1 {
			line = report.Component{Name: "cookies", Origin: line.Origin, Saved: 3, Restored: 1, Dropped: 2, Reason: report.Damaged.With("damaged")}
		}
		lines = append(lines, line)
	}
	lines = append(lines, report.Component{Name: "tabs", Saved: 1})
	got := report.Bounded(lines)
	if len(got) != report.MaxLines+2 || got[0].Origin != "0000.example" || got[2].Origin != "0900.example" {
		t.Fatalf("%d lines, the first %+v", len(got), got[:3])
	}
	want := report.Component{Name: "cookies", Saved: 2700, Restored: 1796, Expired: 898, Dropped: 6, More: 900,
		Reason: report.AddedUp.Reason()}
	if diff := cmp.Diff(want, got[len(got)-1], cmpopts.IgnoreFields(report.Reason{}, "Text")); diff != "" ||
		!strings.Contains(got[len(got)-1].Reason.Text, "900") || !strings.Contains(got[len(got)-1].Reason.Text, "Chrome refused the cookie") {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, report.Bounded(got)); diff != "" {
		t.Errorf("twice:\n%s", diff)
	}
}
