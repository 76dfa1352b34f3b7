package baseline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// In a profile that was not read over CDP, a cookie counts as restored if Chrome has it,
// and otherwise as a mismatch. The count in the files does not matter.
func TestUnreadCookies(t *testing.T) {
	of := func(name, domain string, expires float64) state.Cookie {
		return state.Cookie{Name: name, Domain: domain, Path: "/", Expires: expires, Session: expires < 0}
	}
	kept, sealed, over := of("kept", "a.example", -1), of("sealed", "a.example", -1), of("over", "b.example", 1)
	s := Baseline{Jar: []state.Cookie{kept}, Found: inspect.Profile{AllCookies: []state.Cookie{kept, sealed, over},
		UnreadableCookies: map[string]string{sealed.Identity(): "sealed"}}}
	counted := []state.Component{
		{Name: "cookies", Origin: "a.example", Saved: 2, Restored: 2},
		{Name: "cookies", Origin: "b.example", Saved: 1, Restored: 1},
		{Name: "history", Saved: 3, Restored: 3},
	}
	want := []state.Component{
		{Name: "cookies", Origin: "a.example", Saved: 2, Restored: 1, Dropped: 1, Reason: report.OtherKey.With("sealed")},
		{Name: "cookies", Origin: "b.example", Saved: 1, Expired: 1},
		{Name: "history", Saved: 3, Restored: 3},
	}
	got := s.UnreadCookies(counted, time.Unix(1_000, 0))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Found = inspect.Profile{} // a jar that could not be read
	want = []state.Component{
		{Name: "cookies", Origin: "a.example", Saved: 2, Restored: 1, Dropped: 1, Reason: report.NotTaken.Reason()},
		{Name: "cookies", Origin: "b.example", Saved: 1, Dropped: 1, Reason: report.NotTaken.Reason()},
		{Name: "history", Saved: 3, Restored: 3},
	}
	if diff := cmp.Diff(want, s.UnreadCookies(counted, time.Unix(1_000, 0))); diff != "" {
		t.Errorf("not listed (-want +got):\n%s", diff)
	}
}
