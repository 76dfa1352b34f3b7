package pageevent

// ReachLimit accepts that the session has reached a limit. It does not block.
func (l *Listener) ReachLimit(limit string, value int64) {
	l.receive(received{kind: LimitReached, data: map[string]any{"limit": limit, "value": value}})
}
