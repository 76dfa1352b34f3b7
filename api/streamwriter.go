package api

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"

	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/wire"
)

// streamWriter writes server-sent events.
type streamWriter struct {
	c       *call
	control *http.ResponseController
	wanted  []string
	// reconnected: the client continues an earlier stream.
	reconnected bool
	begun       bool
	skipped     string // the ID of the last event, if the client did not ask for it
}

func (w *streamWriter) open() error {
	if w.begun {
		return nil
	}
	w.begun = true
	header := w.c.Response().Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // proxies must not buffer
	w.c.Response().WriteHeader(http.StatusOK)
	return w.control.Flush()
}

// end ends a stream that has no more events. If a client reconnects and there are none, the
// answer is 204, which makes it stop reconnecting.
func (w *streamWriter) end() error {
	if w.reconnected && !w.begun {
		return w.c.NoContent(http.StatusNoContent)
	}
	if w.skipped != "" { // else a client that reconnects would begin again
		return w.sendID(w.skipped)
	}
	return w.open()
}

// event sends one event. last reports whether the stream ends with it: done or error,
// unless the event is older than the stream.
func (w *streamWriter) event(e events.StreamEvent) (last bool, err error) {
	for _, gap := range e.Gaps {
		if err := w.send("log", "", map[string]any{"type": "retention_gap", "run_id": gap.RunID, "first_available_sequence": gap.First}); err != nil {
			return false, err
		}
	}
	name, id := streamName(e), fmt.Sprintf("%d-%d", e.At.Run, e.At.Sequence)
	if w.skipped = id; w.wants(name) {
		w.skipped = ""
	}
	last = !e.Old && (name == "done" || name == "error")
	if last && !w.wants(name) { // else a client that reconnects would end here every time
		return last, w.sendID(id)
	}
	return last, w.send(name, id, e.Event)
}

// refuse ends a stream with an error, even if the client did not ask for errors.
func (w *streamWriter) refuse(kind, message string) error {
	w.wanted = nil
	return w.send("error", "", map[string]any{"type": kind, "message": message})
}

// wants reports whether the client asked for events of that name, or for all.
func (w *streamWriter) wants(name string) bool {
	return w.wanted == nil || slices.Contains(w.wanted, name) || name == "heartbeat"
}

// send writes an event, if it is wanted.
func (w *streamWriter) send(name, id string, data any) error {
	if !w.wants(name) {
		return nil
	}
	if err := w.open(); err != nil {
		return err
	}
	text, err := wire.Marshal(data)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("event: " + name + "\ndata: ")
	b.Write(text)
	return w.write(b.String() + "\n\n")
}

// sendID sends the ID of an event that the client did not ask for, so that a client that
// reconnects continues after it. Clients dispatch nothing without data.
func (w *streamWriter) sendID(id string) error {
	if err := w.open(); err != nil {
		return err
	}
	return w.write("id: " + id + "\n\n")
}

func (w *streamWriter) write(text string) error {
	if _, err := w.c.Response().Write([]byte(text)); err != nil {
		return err
	}
	return w.control.Flush()
}
