package main

import (
	"strings"
	"testing"
	"time"
)

// Two nodes on one server take a small load: every call succeeds, the leases are renewed or
// not due yet, and the page has all figures.
func TestScale(t *testing.T) {
	s := settings{nodes: 2, sessions: 16, pool: 4, mix: mix{users: 4, restored: 0.5, saved: 0.5, lookups: 1}, rest: time.Second, first: 4, long: 3 * time.Second}
	m, err := run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if m.filled.Count != s.sessions || m.filled.failures() > 0 {
		t.Errorf("the first sessions: %+v", m.filled)
	}
	l := m.long
	if want := int(s.first * s.long.Seconds()); l.creates.Count != want || l.ends.Count+l.saves.Count != want || l.lookups.Count != want {
		t.Errorf("%d of each call were offered: creates %+v, ends %+v, saves %+v, lookups %+v", want, l.creates, l.ends, l.saves, l.lookups)
	}
	if l.saves.Count > 0 && l.grown("snapshots").rows != int64(l.saves.Count) {
		t.Errorf("%d saves made %+v", l.saves.Count, l.grown("snapshots"))
	}
	if m.renewals.failures() > 0 {
		t.Errorf("renewals: %+v", m.renewals)
	}
	page := m.page()
	for _, want := range []string{"| live sessions, nodes | 16, 2 |", "| `sessions` | ", "| failed calls | 0 |", "## To a million sessions"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Errorf("the page has a figure that is none:\n%s", page)
	}
}
