package session

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// What callers get of records has times in UTC, and lists that are never null.
func TestAnswersOfRecords(t *testing.T) {
	at := time.Date(2026, 11, 20, 19, 0, 0, 0, time.FixedZone("CET", 3600))
	for want, answer := range map[string]any{
		`{"id":"e","user_id":"ada","sha256":"a1","name":"Night","version":"1.0","size_bytes":5,"created_at":"2026-11-20T18:00:00Z"}`: extensionOf(
			profiles.Extension{ID: "e", UserID: "ada", SHA256: "a1", Name: "Night", Version: "1.0", SizeBytes: 5, CreatedAt: at}),
		`[]`: each[profiles.Extension](nil, extensionOf),
	} {
		if got, err := json.Marshal(answer); err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
}
