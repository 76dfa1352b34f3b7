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

// MessageRequest is a message that is to be recorded.
type MessageRequest struct {
	Type     string // one of [MessageTypes]; "": it is for the agent, who has to be there
	Content  string
	StartURL string // where the tab in front is sent first; "": nowhere
}

// Message is one entry of a conversation; it is the wire shape.
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

// Conversation is a part of a session's messages, in order, and how its task stands.
type Conversation struct {
	Messages []Message
	More     bool // others follow
	Status   Status
	HasAgent bool
}

// messageMetadata is what is kept of a message besides its text.
type messageMetadata struct {
	StartURL string `json:"start_url,omitempty"`
}

// execution is how the task stands once a message of a type was posted.
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

// effect is what a stored message changes in its session.
func (m MessageRequest) effect(stored profiles.Message) Effect {
	data := events.Fields{"id": stored.ID, "type": stored.Type, "content": stored.Content}
	if m.StartURL != "" {
		data["start_url"] = m.StartURL
	}
	return Effect{Execution: execution(stored.Type), Event: events.Message, Data: data}
}

// MessageStore keeps messages; see [profiles.MessageStore].
type MessageStore interface {
	AddMessage(ctx context.Context, m profiles.Message, execution profiles.Execution) (profiles.Message, error)
	Messages(ctx context.Context, sessionID string, after int64, limit int) (page []profiles.Message, more bool, err error)
}

// TaskStore keeps the state of sessions' tasks, in the records of sessions; see
// [profiles.SessionStore].
type TaskStore interface {
	UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error)
}

// Notices notify webhooks; see [events.Notices].
type Notices interface {
	// Task notifies of a task that stands otherwise than before.
	Task(was, now profiles.Session) []profiles.Notice
	// Message notifies of a message of a type, and of what it does to the task.
	Message(kind string) func(was, now profiles.Session) []profiles.Notice
	// Wake has what was written sent.
	Wake()
}

// Turns bound how many pages of messages are masked at once, with one of each user.
type Turns interface {
	Take(ctx context.Context, userID string) (leave func(), err error)
}
