package answer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/restore"
)

// A webhook receives the session's JSON without anything that gives access to it.
func TestHookSession(t *testing.T) {
	rec := profiles.Session{ID: "s", UserID: "alice", Status: profiles.StatusReady, Goal: "g", WebhookURL: "https://hooks.example/?key=hidden",
		Sealed: []byte("hidden"), SealedRequest: []byte("hidden"), RequestHash: "hidden", RunDir: "hidden",
		Restored: profiles.JSON(restore.Report{SnapshotID: "snap-1", Notes: &restore.Notes{SessionID: "hidden"}})}
	var got map[string]any
	body := HookSession(rec)
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	restored, _ := got["restored"].(map[string]any)
	if strings.Contains(string(body), "hidden") || got["cdp_url"] != nil || got["session_id"] != "s" || got["goal"] != "g" || restored["snapshot_id"] != "snap-1" {
		t.Errorf("%s", body)
	}
}
