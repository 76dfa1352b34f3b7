package verify

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

var savedOverrides = state.Overrides{UserAgent: "Mozilla/5.0 (X11; Linux x86_64) Test/1", Locale: "de-DE", Timezone: "Asia/Calcutta",
	Viewport: &state.Viewport{Width: 800, Height: 600}}

func TestCheckOverrides(t *testing.T) {
	whole := state.Component{Name: state.ComponentOverrides, Saved: 4, Restored: 4}
	got, differs := checkOverrides(whole, savedOverrides, savedOverrides, capture.Identity{UserAgent: "Chrome", Timezone: "UTC", CanonicalTimezone: "Asia/Kolkata"})
	if got.Restored != 2 || got.Dropped != 2 || got.Reason.Code != report.Differs || !strings.Contains(got.Reason.Text, ": user_agent, timezone") {
		t.Errorf("%+v", got)
	}
	if len(differs) != 1 || differs[0].By != state.ByRestore || differs[0].Changed != 2 || strings.Join(differs[0].Names, " ") != "timezone user_agent" {
		t.Errorf("%+v", differs)
	}
	// Overrides that the create sets itself are not expected to be restored.
	own := state.Overrides{UserAgent: "Chrome", Timezone: "UTC"}.WithDefaults(savedOverrides)
	replaced := state.Component{Name: state.ComponentOverrides, Saved: 4, Restored: 2, Dropped: 2, Reason: report.Replaced.With("own")}
	if got, differs := checkOverrides(replaced, savedOverrides, own, capture.Identity{UserAgent: "Chrome", Timezone: "UTC", CanonicalTimezone: "Asia/Kolkata"}); len(differs) != 0 || got.Restored != 2 {
		t.Errorf("%+v, %+v", got, differs)
	}
}
