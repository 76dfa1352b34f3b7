package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// MessageTypes are the types of messages, those of the session API.
var MessageTypes = []string{"USER", "THOUGHT", "QUESTION", "DONE", "ERROR", "LOG"}

// MessageRequest is a message to record.
type MessageRequest struct {
	Type     string // one of [MessageTypes]; "": a message for the agent, which must be attached
	Content  string
	StartURL string // where to send the front tab first; "": nowhere
}

// Message is one entry of a conversation. It is the wire format.
type Message struct {
	ID       int64           `json:"id"` // 1, 2, … within the session
	Type     string          `json:"type"`
	Content  string          `json:"content"`
	At       time.Time       `json:"timestamp"`
	Metadata json.RawMessage `json:"metadata"`
}

func messageOf(m profiles.Message) Message {
	metadata := m.Metadata
	if len(metadata) == 0 {
		metadata = json.RawMessage("{}")
	}
	return Message{m.ID, m.Type, m.Content, m.At.UTC(), metadata}
}

// Conversation is a part of a session's messages, in order, and the state of its task.
type Conversation struct {
	Messages []Message
	More     bool // there are later messages
	Status   Status
	HasAgent bool
}

// messageMetadata is what is stored of a message besides its text.
type messageMetadata struct {
	StartURL string `json:"start_url,omitempty"`
}

// execution returns the state of the task after a message of a type was recorded.
func execution(messageType string) profiles.Execution {
	switch messageType {
	case "QUESTION":
		return profiles.ExecutionWaiting
	case "DONE":
		return profiles.ExecutionFinished
	case "ERROR":
		return profiles.ExecutionError
	default:
		return profiles.ExecutionRunning
	}
}

// effect returns what a stored message changes in its session.
func (m MessageRequest) effect(stored profiles.Message) Effect {
	data := events.Fields{"id": stored.ID, "type": stored.Type, "content": stored.Content}
	if m.StartURL != "" {
		data["start_url"] = m.StartURL
	}
	return Effect{Execution: execution(stored.Type), Event: events.Message, Data: data}
}

// MessageStore stores messages; see [profiles.MessageStore].
type MessageStore interface {
	AddMessage(ctx context.Context, m profiles.Message, execution profiles.Execution) (profiles.Message, error)
	Messages(ctx context.Context, sessionID string, after int64, limit int) (page []profiles.Message, more bool, err error)
}

// TaskStore stores the state of sessions' tasks in the sessions' records; see
// [profiles.SessionStore].
type TaskStore interface {
	UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error)
}

// Notices makes the deliveries of webhooks; see [events.Notices].
type Notices interface {
	// Task returns the notices of a change of a task's state.
	Task(was, now profiles.Session) []profiles.Notice
	// Message returns the notices of a message of a type, and of what it does to the
	// task.
	Message(kind string) func(was, now profiles.Session) []profiles.Notice
	// Wake wakes the sender to send what was queued.
	Wake()
}

// Turns limits how many pages of messages are masked at once, at most one for each user.
type Turns interface {
	Take(ctx context.Context, userID string) (leave func(), err error)
}
