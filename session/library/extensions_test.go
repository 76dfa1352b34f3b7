package library

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// An extension on the wire has its time in UTC.
func TestExtensionOnTheWire(t *testing.T) {
	at := time.Date(2026, 11, 20, 19, 0, 0, 0, time.FixedZone("CET", 3600))
	got, err := json.Marshal(extensionOf(profiles.Extension{ID: "e", UserID: "ada", SHA256: "a1", Name: "Night", Version: "1.0", SizeBytes: 5, CreatedAt: at}))
	want := `{"id":"e","user_id":"ada","sha256":"a1","name":"Night","version":"1.0","size_bytes":5,"created_at":"2026-11-20T18:00:00Z"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}
