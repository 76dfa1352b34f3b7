package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/state"
)

// A report is bounded when it is made and once more when it has been verified:
// what was counted the first time is still in the count.
func TestBoundedWarnings(t *testing.T) {
	once, unlisted := boundedWarnings(slices.Repeat([]string{"w"}, maxWarnings+50), 0)
	if len(once) != maxWarnings+1 || unlisted != 50 || !strings.Contains(once[maxWarnings], "50") {
		t.Errorf("%d: %q", unlisted, once[maxWarnings:])
	}
	r := RestoreReport{Warnings: slices.Repeat([]string{"w"}, maxWarnings+50)}
	r.bound()
	r.Components = []state.Component{{Name: state.ComponentTabs, Saved: 1, Dropped: 1}} // one of the listed makes room for it
	r.warn("v", "v")
	if len(r.Warnings) != maxWarnings+1 || r.Unlisted != 53 || r.Losses != 1 || !strings.Contains(r.Warnings[maxWarnings], "53") {
		t.Errorf("%d: %q", r.Unlisted, r.Warnings[maxWarnings:])
	}
	r.Components = nil
	r.warn()
	if r.Losses != 0 || slices.ContainsFunc(r.Warnings[:maxWarnings-1], func(w string) bool { return w != "w" }) {
		t.Errorf("of a loss that was none: %q", r.Warnings)
	}
}
