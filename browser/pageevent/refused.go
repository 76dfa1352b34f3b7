package pageevent

import "github.com/stasisd/stasis/egress"

// Refuse accepts a connection of the browser that was refused. It does not block.
func (l *Listener) Refuse(r egress.Refusal) {
	l.receive(received{kind: Refused, data: map[string]any{"address": r.To.String(), "protocol": r.Protocol}})
}
