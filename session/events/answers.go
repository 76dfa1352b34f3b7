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
	Cause     string // why it ended, for people
	StartedAt time.Time
	EndedAt   time.Time // zero while it runs
}

func runOf(r profiles.Run) Run {
	return Run{r.ID, r.Number, string(r.Status), r.Cause, r.StartedAt.UTC(), r.EndedAt}
}

// Event is one numbered record in a run; it is the wire shape.
type Event struct {
	RunID    string          `json:"run_id"`
	Sequence int64           `json:"sequence"`
	Type     string          `json:"type"`
	At       time.Time       `json:"timestamp"`
	Data     json.RawMessage `json:"data"`
}

func eventOf(e profiles.Event) Event {
	data := e.Data
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	return Event{e.RunID, e.Sequence, e.Type, e.At.UTC(), data}
}

// EventPage is a part of a run's events, in order; it is the wire shape, whose
// names are those of the published run event records.
type EventPage struct {
	Events          []Event `json:"events"`
	First           int64   `json:"first_available_sequence"`  // the oldest event that is kept; LatestExclusive if none is
	LatestExclusive int64   `json:"latest_sequence_exclusive"` // what the next event will have
	NextAfter       int64   `json:"next_after_sequence"`       // the after of the next page
	Gap             bool    `json:"retention_gap"`             // events after the one asked for, and before this page, were trimmed
	HasMore         bool    `json:"has_more"`
}

// FollowRequest asks for a session's events as they come.
type FollowRequest struct {
	After *Position // go on after this event; nil: from the beginning
	Fresh bool      // without After: only what comes from now on
	Whole bool      // secrets too, which needs the right to
}

// StreamEvent is one event of a [Stream].
type StreamEvent struct {
	Event
	At Position
	// Old reports that the event was there when the stream began, and that its reader
	// does not go on from an earlier one.
	Old  bool
	Gaps []Gap // where events before this one were trimmed before they could be read
}

// Stream gives a session's events, each once and in order. It is for one reader, who
// closes it.
type Stream interface {
	// Next waits for the next event. io.EOF says that the session has ended and that
	// all was given; unauthorized, that the reader's key was deleted.
	Next(ctx context.Context) (StreamEvent, error)
	Close()
}
