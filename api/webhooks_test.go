package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session"
)

// A webhook is told a session as it is on the wire, and nothing that lets
// anybody in.
func TestSessionBody(t *testing.T) {
	info := session.Info{Session: profiles.Session{ID: liveID, UserID: "alice", Status: profiles.StatusReady, Goal: "g", WebhookURL: "https://hooks.example/?key=hidden", CreatedAt: born,
		Sealed: []byte("hidden"), RequestHash: "hidden", RunDir: "hidden"}, Tickets: map[session.Purpose]string{session.PurposeCDP: "hidden"},
		Restored: &session.RestoreReport{SnapshotID: "snap-1", Notes: &session.RestoredNotes{SessionID: "hidden"}}}
	var got map[string]any
	body := SessionBody(info)
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), "hidden") || got["cdp_url"] != nil || got["session_id"] != liveID || got["goal"] != "g" || info.Restored.Notes == nil {
		t.Errorf("%s", body)
	}
}
