package pageevent

import "github.com/stasisd/stasis/egress"

// Refuse accepts a connection or a name of the browser that was refused. It does not block.
func (l *Listener) Refuse(r egress.Refusal) {
	data := map[string]any{"protocol": r.Protocol}
	switch {
	case r.Host == "":
		data["address"] = r.To.String()
	case r.To.IsValid():
		data["host"], data["address"] = r.Host, r.To.Addr().String()
	default:
		data["host"] = r.Host
	}
	l.receive(received{kind: Refused, data: data})
}
