package mux

import (
	"context"
	"time"
)

// A lull is a time of this length in which no client asks for anything: one that
// drives a page asks more often. The first may take longer to come: it is told of
// its session, and connects. A client that never rests is not waited for longer
// than the deadline.
const (
	lull         = 100 * time.Millisecond
	firstLull    = 400 * time.Millisecond
	lullDeadline = 3 * time.Second
)

// Lull returns when the clients leave Chrome alone for a moment, for work that
// nobody waits for. It returns at its deadline too, and when ctx ends.
func (m *Mux) Lull(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lullDeadline)
	defer cancel()
	beat := time.NewTicker(lull)
	defer beat.Stop()
	rest := firstLull
	for before := m.asked.Load(); ; {
		select {
		case <-beat.C:
			now := m.asked.Load()
			rest -= lull
			if now == before && (now > 0 || rest <= 0) {
				return
			}
			before = now
		case <-m.done:
			return
		case <-ctx.Done():
			return
		}
	}
}
