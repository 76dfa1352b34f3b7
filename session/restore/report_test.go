package restore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// A report is bounded when it is made and again after its verification. The count of
// unlisted warnings adds up.
func TestBoundedWarnings(t *testing.T) {
	once, unlisted := report.BoundedWarnings(slices.Repeat([]string{"w"}, report.MaxWarnings+50), 0)
	if len(once) != report.MaxWarnings+1 || unlisted != 50 || !strings.Contains(once[report.MaxWarnings], "50") {
		t.Errorf("%d: %q", unlisted, once[report.MaxWarnings:])
	}
	r := Report{Warnings: slices.Repeat([]string{"w"}, report.MaxWarnings+50)}
	r.bound()
	r.Components = []state.Component{{Name: state.ComponentTabs, Saved: 1, Dropped: 1}} // its warning takes the place of a listed one
	r.warn("v", "v")
	if len(r.Warnings) != report.MaxWarnings+1 || r.Unlisted != 53 || r.Losses != 1 || !strings.Contains(r.Warnings[report.MaxWarnings], "53") {
		t.Errorf("%d: %q", r.Unlisted, r.Warnings[report.MaxWarnings:])
	}
	r.Components = nil
	r.warn()
	if r.Losses != 0 || slices.ContainsFunc(r.Warnings[:report.MaxWarnings-1], func(w string) bool { return w != "w" }) {
		t.Errorf("no line has a loss, but the warnings are %q", r.Warnings)
	}
}

// A report with thousands of losses lists the first ones. Its first warning is the sum.
func TestBoundedReport(t *testing.T) {
	r := Report{}
	for i := range 3000 {
		r.Components = append(r.Components, state.Component{Name: "cookies", Origin: fmt.Sprint(i), Saved: 1, Dropped: 1, Reason: report.Other.With("x")})
		r.Warnings = append(r.Warnings, "w")
	}
	r.bound()
	if len(r.Components) != report.MaxLines+1 || len(r.Warnings) != report.MaxWarnings+1 || !strings.HasPrefix(r.Warnings[0], "cookies: 3000 of 3000") {
		t.Errorf("%d lines, %d warnings, %q", len(r.Components), len(r.Warnings), r.Warnings[0])
	}
}
