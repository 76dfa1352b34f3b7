package events

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// Run is one lifetime of a session's browser, as callers see it.
type Run struct {
	ID        string
	Number    int64  // 1, 2, … within the session
	Status    string // running | completed | failed | cancelled
	Cause     string // why it ended, as text for people
	StartedAt time.Time
	EndedAt   time.Time // zero while it runs
}

func runOf(r profiles.Run) Run {
	return Run{r.ID, r.Number, string(r.Status), r.Cause, r.StartedAt.UTC(), r.EndedAt}
}

// Event is one numbered event of a run. It is the wire format.
type Event struct {
	RunID    string          `json:"run_id"`
	Sequence int64           `json:"sequence"`
	Type     string          `json:"type"`
	At       time.Time       `json:"timestamp"`
	Data     json.RawMessage `json:"data"`
	// Of a message only, for clients of the session API: its text, and its ID in the
	// conversation.
	Text      *string `json:"text,omitempty"`
	MessageID int64   `json:"message_id,omitempty"`
}

func eventOf(e profiles.Event) Event {
	data := e.Data
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	answer := Event{RunID: e.RunID, Sequence: e.Sequence, Type: e.Type, At: e.At.UTC(), Data: data}
	if e.Type != Message {
		return answer
	}
	var m struct {
		ID      int64           `json:"id"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(data, &m) == nil && m.ID > 0 { // a message that was too large has neither
		var text string
		if json.Unmarshal(m.Content, &text) != nil {
			text = string(m.Content)
		}
		answer.Text, answer.MessageID = &text, m.ID
	}
	return answer
}

// EventPage is a part of a run's events, in order. It is the wire format; its names are
// those of the published run event records.
type EventPage struct {
	Events          []Event `json:"events"`
	First           int64   `json:"first_available_sequence"`  // the oldest stored event; LatestExclusive if none is stored
	LatestExclusive int64   `json:"latest_sequence_exclusive"` // the sequence of the next event
	NextAfter       int64   `json:"next_after_sequence"`       // the value of after for the next page
	Gap             bool    `json:"retention_gap"`             // events between after and this page were trimmed
	HasMore         bool    `json:"has_more"`
}

// FollowRequest says which events of a session to follow.
type FollowRequest struct {
	After   *Position // continue after this event; nil: from the beginning
	Fresh   bool      // if After is nil: only new events
	Secrets bool      // with secrets, which needs the right to secrets
}

// StreamEvent is one event of a [Stream].
type StreamEvent struct {
	Event
	At Position
	// Old reports that the event existed when the stream began. It is false if the reader
	// continues after an earlier event.
	Old  bool
	Gaps []Gap // the runs with events before this one that were trimmed unread
}

// Stream returns a session's events, each once and in order. It has one reader, who must
// close it.
type Stream interface {
	// Next waits for the next event. io.EOF means that the session has ended and all
	// events were returned. The error unauthorized means that the reader's key was
	// deleted.
	Next(ctx context.Context) (StreamEvent, error)
	Close()
}
