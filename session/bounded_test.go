package session

import (
	"slices"
	"testing"
)

// A report is bounded when it is made and once more when it has been verified:
// what was counted the first time is still in the count.
func TestBoundedWarnings(t *testing.T) {
	once := boundedWarnings(slices.Repeat([]string{"w"}, maxWarnings+50))
	twice := boundedWarnings(append(slices.Clone(once), "v", "v"))
	if len(once) != maxWarnings+1 || once[maxWarnings] != "and 50 more warnings" || len(twice) != maxWarnings+1 || twice[maxWarnings] != "and 52 more warnings" {
		t.Errorf("%q, then %q", once[maxWarnings:], twice[maxWarnings:])
	}
}
