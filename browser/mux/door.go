package mux

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/stasisd/stasis/fault"
)

// Door is what clients come in by, from one [Mux.Admit] to the next. A caller
// takes it when it decides that a client may come, and gives it to
// [Mux.Serve]: if clients were sent away in between, the client is late and is
// sent away too, even where the mux serves others again by then. The first
// door is the zero value.
type Door uint64

// entrance is the door that is used now. It is guarded by Mux.mu.
type entrance struct {
	door   Door
	shut   bool
	code   int // what the last CloseClients gave
	reason string
}

// Door is the one that is used now.
func (m *Mux) Door() Door {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entrance.door
}

// Admit lets clients come again after CloseClients, by a new door. Without a
// CloseClients before it does nothing.
func (m *Mux) Admit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entrance.shut {
		m.entrance.shut = false
		m.entrance.door++
	}
}

// CloseClients ends every client's connection with a code and a reason and
// waits until they are gone or ctx has ended. One that comes later is closed
// alike, until Admit.
func (m *Mux) CloseClients(ctx context.Context, code int, reason string) error {
	m.mu.Lock()
	m.entrance.shut, m.entrance.code, m.entrance.reason = true, code, reason
	all := slices.Collect(maps.Keys(m.clients))
	m.mu.Unlock()
	for _, c := range all {
		c.end(code, reason, nil, false)
	}
	for _, c := range all {
		select {
		case <-c.exited:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "mux.close_clients", "")
		}
	}
	return nil
}

// enter lets a client in. One that must not come in has ended when enter
// returns false; its cause is Serve's error.
func (m *Mux) enter(c *client, door Door) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch at := m.entrance; {
	case m.err != nil || m.closing:
		// What there is to report is the browser's end, not the client's.
		c.end(CloseBrowserGone, "browser gone", fault.Wrap(errors.Join(errClosed, m.err),
			fault.BrowserFailed, "mux.serve", "the browser is gone"), false)
		return false
	case at.shut || door != at.door:
		c.end(at.code, at.reason, nil, false)
		return false
	}
	m.serves.Add(1)
	m.clients[c] = struct{}{}
	m.changed()
	return true
}
