package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state/report"
)

// A report that is returned later counts what has expired since, and counts nothing
// twice.
func TestExpiredIn(t *testing.T) {
	then := time.Unix(1_000_000, 0)
	jar := []Cookie{
		{Name: "a", Domain: ".a.example", Expires: float64(then.Add(time.Minute).Unix())},
		{Name: "b", Domain: "a.example", Expires: float64(then.Add(time.Hour).Unix())},
		{Name: "c", Domain: "a.example", Session: true},
		{Name: "d", Domain: "b.example", Expires: float64(then.Add(time.Minute).Unix())},
	}
	lines := []Component{
		{Name: ComponentCookies, Origin: "a.example", Saved: 4, Restored: 3, Expired: 1},
		{Name: ComponentCookies, Origin: "b.example", Saved: 1, Dropped: 1, Reason: report.Other.With("why")},
		{Name: ComponentLocalStorage, Origin: "a.example", Saved: 1, Restored: 1},
	}
	if diff := cmp.Diff(lines, ExpiredIn(lines, jar, then)); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}
	want := []Component{{Name: ComponentCookies, Origin: "a.example", Saved: 4, Restored: 2, Expired: 2}, lines[1], lines[2]}
	if diff := cmp.Diff(want, ExpiredIn(lines, jar, then.Add(2*time.Minute))); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
}
