package pageevent

import (
	"encoding/json"

	"github.com/stasisd/stasis/browser/mux"
)

// limitReached is the method of an event of [Listener.ReachLimit]; Chrome has none of that
// name.
const limitReached = "Stasis.limitReached"

// reached is the data of the event, also in the journal.
type reached struct {
	Limit string `json:"limit"`
	Value int64  `json:"value"`
}

// ReachLimit reports that the session has reached a limit.
func (l *Listener) ReachLimit(limit string, value int64) {
	params, _ := json.Marshal(reached{limit, value}) // a text and a number
	l.Receive(mux.PageEvent{Method: limitReached, Params: params})
}

func limitData(params []byte) map[string]any {
	var r reached
	_ = json.Unmarshal(params, &r) // of ReachLimit
	return map[string]any{"limit": r.Limit, "value": r.Value}
}
