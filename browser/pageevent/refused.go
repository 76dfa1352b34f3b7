package pageevent

import (
	"encoding/json"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/egress"
)

// refused is the method of a connection that was refused, among the events of the mux.
const refused = "Stasis.egressRefused"

// Refuse accepts a connection of the browser that was refused. It does not block.
func (l *Listener) Refuse(r egress.Refusal) {
	params, _ := json.Marshal(r) // two values that are text
	l.Receive(mux.PageEvent{Method: refused, Params: params})
}

func refusalData(params []byte) map[string]any {
	var r egress.Refusal
	_ = json.Unmarshal(params, &r) // of Refuse
	return map[string]any{"address": r.To.String(), "protocol": r.Protocol}
}
