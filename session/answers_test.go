package session

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// What callers get of records has times in UTC, an empty document where a record
// has none, and lists that are never null.
func TestAnswersOfRecords(t *testing.T) {
	at := time.Date(2026, 11, 20, 19, 0, 0, 0, time.FixedZone("CET", 3600))
	for want, answer := range map[string]any{
		`{"run_id":"r","sequence":3,"type":"paused","timestamp":"2026-11-20T18:00:00Z","data":{}}`: eventOf(
			profiles.Event{RunID: "r", Sequence: 3, Type: "paused", At: at, Sealed: []byte("secret")}),
		`{"id":1,"type":"USER","content":"Yes","timestamp":"2026-11-20T18:00:00Z","metadata":{}}`: messageOf(
			profiles.Message{SessionID: "s", ID: 1, Type: "USER", Content: "Yes", At: at}),
		`[]`: each[profiles.Event](nil, eventOf),
	} {
		if got, err := json.Marshal(answer); err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
}
