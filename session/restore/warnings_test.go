package restore

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// timedOut makes one warning for each kind of state that a restore had no time for.
func TestTimedOut(t *testing.T) {
	late := func(name, origin string) state.Component {
		return state.Component{Name: name, Origin: origin, Saved: 1, Dropped: 1, Reason: report.NoTime.Reason()}
	}
	got := timedOut([]state.Component{late("local_storage", "https://a.example/"), late("indexed_db", "https://a.example/"), late("local_storage", "https://b.example/"),
		{Name: "cookies", Saved: 1, Dropped: 1, Reason: report.Refused.With("Chrome refused the cookie")}})
	if len(got) != 2 || !strings.HasPrefix(got[0], "indexed_db of 1 ") || !strings.HasPrefix(got[1], "local_storage of 2 ") {
		t.Errorf("%q", got)
	}
}
