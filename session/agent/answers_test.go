package agent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// A message has its time in UTC, and an empty object as metadata if its record has none.
func TestMessageAnswer(t *testing.T) {
	at := time.Date(2026, 11, 20, 19, 0, 0, 0, time.FixedZone("CET", 3600))
	const want = `{"id":1,"type":"USER","role":"user","content":"Yes","timestamp":"2026-11-20T18:00:00Z","metadata":{}}`
	answer, err := messageOf(profiles.Message{SessionID: "s", ID: 1, Type: "USER", Content: "Yes", At: at})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(answer)
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}
