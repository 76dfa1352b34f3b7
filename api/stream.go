package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/events"
)

// defaultHeartbeat is the default time between two heartbeats of a stream.
const defaultHeartbeat = 30 * time.Second

// streamNames are the names of events in a stream: those of the session API, and tool for
// calls of tools. Clients of that API also know user.
var streamNames = []string{"step", "thought", "question", "user", "done", "error", "log", "tool", "paused", "resumed", "heartbeat"}

// streamName returns an event's name in a stream. A message has the name of its type. The
// end of a run says how the run ended. Other events are steps, or log if they are only
// informative.
func streamName(e events.StreamEvent) string {
	switch e.Type {
	case events.Message:
		var m struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(e.Data, &m) == nil {
			if name := strings.ToLower(m.Type); slices.Contains(streamNames, name) {
				return name
			}
		}
		return "log"
	case events.Ended:
		var end struct {
			Status string `json:"status"`
		}
		if json.Unmarshal(e.Data, &end) == nil && end.Status == "failed" {
			return "error"
		}
		return "done"
	case events.Cancelled:
		return "done"
	case events.Paused, events.Resumed:
		return e.Type
	case events.Console, events.Dropped:
		return "log"
	default:
		return "step"
	}
}

// events streams a session's events as server-sent events. The stream ends when the session
// is done, has failed or has ended, or when the client disconnects. A client that
// reconnects with the ID of the last event it received misses none and gets none twice.
func (h *historyHandler) events(c *call) error {
	q := struct {
		Types    string `json:"event_types"`
		History  bool   `json:"include_history"`
		Sanitize bool   `json:"sanitize"`
	}{History: true, Sanitize: true}
	if err := c.query(&q); err != nil {
		return err
	}
	wanted, err := streamTypes(q.Types)
	if err != nil {
		return err
	}
	after, err := lastEventID(c.Request())
	if err != nil {
		return err
	}
	if !q.Sanitize {
		c.audit.secrets()
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	defer context.AfterFunc(h.closing, cancel)()
	feed, err := h.history.Follow(ctx, c.caller, id, events.FollowRequest{After: after, Fresh: !q.History, Secrets: !q.Sanitize})
	if err != nil {
		return err
	}
	defer feed.Close()
	closed, err := h.streams.OpenSocket(ctx, c.caller, id)
	if err != nil {
		return err
	}
	defer closed()
	return h.follow(ctx, c, feed, wanted, after != nil)
}

// streamTypes returns the names that a client wants; nil means all.
func streamTypes(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if !slices.Contains(streamNames, names[i]) {
			return nil, invalid("event_types", "must be some of %s, with commas between them", strings.Join(streamNames, ", "))
		}
	}
	return names, nil
}

// lastEventID returns where a client stopped reading: the number of a run and of an event
// in it, as a stream gave them. nil if the client does not say.
func lastEventID(r *http.Request) (*events.Position, error) {
	header := r.Header.Get("Last-Event-ID")
	if header == "" {
		return nil, nil
	}
	run, sequence, ok := strings.Cut(header, "-")
	at := events.Position{}
	var err1, err2 error
	at.Run, err1 = strconv.ParseInt(run, 10, 64)
	at.Sequence, err2 = strconv.ParseInt(sequence, 10, 64)
	if !ok || err1 != nil || err2 != nil || at.Run < 1 || at.Sequence < 0 {
		return nil, invalid("Last-Event-ID", "must be an ID that this stream gave, such as 1-17")
	}
	return &at, nil
}

// feedResult is one result of a feed.
type feedResult struct {
	events.StreamEvent
	err error
}

// follow sends the events of the feed, and heartbeats in between. reconnected reports that
// the client continues an earlier stream.
func (h *historyHandler) follow(ctx context.Context, c *call, feed events.Stream, wanted []string, reconnected bool) error {
	ctx, cancel := context.WithCancel(ctx)
	given := make(chan feedResult)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			e, err := feed.Next(ctx)
			select {
			case given <- feedResult{e, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() { cancel(); <-over }()
	out := &streamWriter{c: c, wanted: wanted, reconnected: reconnected, control: http.NewResponseController(c.Response())}
	beat := time.NewTicker(h.heartbeat)
	defer beat.Stop()
	quiet := time.NewTimer(headerDelay)
	defer quiet.Stop()
	for {
		var err error
		select {
		case n := <-given:
			switch {
			case errors.Is(n.err, io.EOF):
				return out.end()
			case fault.Is(n.err, fault.Unauthorized): // the key was deleted
				return out.refuse("key_deleted", fault.MessageOf(n.err))
			case n.err != nil && ctx.Err() != nil:
				return nil // the client has disconnected, or the daemon stops
			case n.err != nil:
				return n.err
			}
			var last bool
			if last, err = out.event(n.StreamEvent); last {
				return err
			}
		case <-quiet.C:
			err = out.open()
		case now := <-beat.C:
			err = out.send("heartbeat", "", map[string]any{"timestamp": now.UTC()})
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return nil // the client no longer reads
		}
	}
}

// headerDelay is how long a stream without an event waits for one before it sends its
// header. Until then it can still answer 204, which means that no events will come.
const headerDelay = 50 * time.Millisecond
