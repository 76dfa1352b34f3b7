package browser

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

var awayOverrides = state.Overrides{UserAgent: "Mozilla/5.0 (X11; Linux x86_64) Test/1", Locale: "de-DE", Timezone: "Asia/Calcutta",
	Viewport: &state.Viewport{Width: 800, Height: 600}}

// The values that Chrome shows to pages are read back. Overrides that cannot be read back
// are reported as such.
func TestOverridesAreReadBack(t *testing.T) {
	r := newRig(t)
	b, lines := r.restored(r.dir(), state.Document{SchemaVersion: state.SchemaVersion, Complete: true, Datadir: state.DatadirNone,
		Overrides: awayOverrides}, Options{})
	v, err := b.Verify(within(t), state.Document{Complete: true, Datadir: state.DatadirNone, Overrides: awayOverrides}, lines)
	if err != nil || !v.OK() {
		t.Errorf("%+v, %v", v, err)
	}
	if c := line(v.Components, state.ComponentOverrides, ""); c.Saved != 4 || c.Restored != 4 || c.Reason.Code != report.NotReadBack || !strings.HasSuffix(c.Reason.Text, ": viewport, locale") {
		t.Errorf("%+v", c)
	}
	// A time zone that this Chrome does not know counts as not restored.
	unknown := awayOverrides
	unknown.Timezone = "Mars/Phobos"
	b.options.Overrides.Timezone = unknown.Timezone
	v, err = b.Verify(within(t), state.Document{Complete: true, Datadir: state.DatadirNone, Overrides: unknown}, lines)
	if c := line(v.Components, state.ComponentOverrides, ""); err != nil || v.OK() || c.Dropped != 1 {
		t.Errorf("an unknown time zone: %+v, %v", v, err)
	}
}
