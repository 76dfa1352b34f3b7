package session

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/state"
)

// A tab's unread state is reported as lost only if it is: the closed profile is searched
// first.
func TestUnreadTabs(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.browsers.last().reads = func(doc *state.Document) {
		many := 7 // a value from an uploaded document
		doc.Missed = []state.Missed{
			{Component: state.ComponentSessionStorage, Origin: "https://a.example/?x", Reason: "no answer", InProfile: &many},
			{Component: state.ComponentWindowName, Origin: "https://a.example/", Reason: "no answer"}}
	}
	_, answer := r.savedDocument(id)
	warnings := strings.Join(answer.Snapshot.Warnings, "\n")
	if !strings.Contains(warnings, "session_storage https://a.example/?x could not be read and is not in the profile, which Chrome closed: no answer") ||
		!strings.Contains(warnings, "window_name https://a.example/ was not saved: no answer") {
		t.Errorf("the warnings: %s", warnings)
	}
	// The restore reports the same.
	back := strings.Join(r.create(alice, func(c *request.Create) { c.FromSession = id }).Restored.Warnings, "\n")
	if !strings.Contains(warnings, back) || back == "" {
		t.Errorf("restore warnings: %s", back)
	}
	n := 3
	for kind, says := range map[string]string{
		state.ComponentSessionStorage: "session_storage o is saved only in the profile, which Chrome closed (items there of all its tabs: 3): r",
		state.ComponentHistory:        "tab_history o is saved only in the session files of the profile, which Chrome closed: r",
	} {
		doc := state.Document{Datadir: state.DatadirClean, Missed: []state.Missed{{Component: kind, Origin: "o", Reason: "r", InProfile: &n}}}
		if got := state.CaptureWarnings(doc); got[0] != says {
			t.Errorf("%q, want %q", got[0], says)
		}
		doc.Datadir = state.DatadirLive // a live copy's reading wins, and has nothing
		if got := state.CaptureWarnings(doc); !strings.Contains(got[0], "was not saved") {
			t.Errorf("live copy: %q", got[0])
		}
	}
}
