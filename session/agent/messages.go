package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// The types of messages that differ from the others.
const (
	TypeUser = "USER" // also a message without a type
	TypeDone = "DONE" // may have an object
	TypeTool = "TOOL" // has a [ToolCall]; ours
)

// MessageTypes are the types of messages: those of the session API, and [TypeTool].
var MessageTypes = []string{TypeUser, "THOUGHT", "QUESTION", TypeDone, "ERROR", "LOG", TypeTool}

// MessageRequest is a message to record.
type MessageRequest struct {
	Type     string // one of [MessageTypes]; "": a message for the agent, which may come later
	Content  string
	Object   bool      // Content is the JSON of an object
	Tool     *ToolCall // with [TypeTool] only
	StartURL string    // where to send the front tab first; "": nowhere
}

// ToolCall is a call of a tool by the agent.
type ToolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object; nil: none
	Result    json.RawMessage `json:"result,omitempty"`    // any JSON; nil: none
}

// Message is one entry of a conversation. It is the wire format.
type Message struct {
	ID        int64           `json:"id"` // 1, 2, … within the session
	Type      string          `json:"type"`
	Role      string          `json:"role"`    // user | assistant | tool
	Content   any             `json:"content"` // a string, or the JSON of an object
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	At        time.Time       `json:"timestamp"`
	Metadata  json.RawMessage `json:"metadata"`
}

// Sent is a message that was recorded.
type Sent struct {
	Message
	HasAgent bool // an agent was attached
}

// messageOf returns a stored message in the wire format.
func messageOf(m profiles.Message) (Message, error) {
	stored, err := readMetadata(m)
	if err != nil {
		return Message{}, err
	}
	answer := Message{ID: m.ID, Type: m.Type, Role: roleOf(m.Type), Content: content(m.Content, stored.Object), At: m.At.UTC(),
		Metadata: profiles.JSON(publicMetadata{stored.StartURL})}
	if t := stored.Tool; t != nil {
		answer.Name, answer.Arguments, answer.Result = t.Name, t.Arguments, t.Result
	}
	return answer, nil
}

// content returns a message's text, or the object that the text is the JSON of.
func content(text string, object bool) any {
	if object {
		return json.RawMessage(text)
	}
	return text
}

// roleOf returns who says messages of a type.
func roleOf(messageType string) string {
	switch messageType {
	case TypeUser:
		return "user"
	case TypeTool:
		return "tool"
	default:
		return "assistant"
	}
}

// Conversation is a part of a session's messages, in order, and the state of its task.
type Conversation struct {
	Messages []Message
	More     bool // there are later messages
	Status   Status
	HasAgent bool
}

// publicMetadata is the metadata of a message on the wire.
type publicMetadata struct {
	StartURL string `json:"start_url,omitempty"`
}

// messageMetadata is what is stored of a message besides its text.
type messageMetadata struct {
	publicMetadata
	Object bool      `json:"object,omitempty"` // the text is the JSON of an object
	Tool   *ToolCall `json:"tool,omitempty"`
}

func readMetadata(m profiles.Message) (meta messageMetadata, err error) {
	if len(m.Metadata) > 0 {
		err = json.Unmarshal(m.Metadata, &meta)
	}
	return meta, fault.Wrap(err, fault.StoreFailed, "agent.messages", "a stored message cannot be read")
}

// maskMessage masks the secrets of a stored message.
func maskMessage(m *profiles.Message) error {
	meta, err := readMetadata(*m)
	if err != nil {
		return err
	}
	if meta.Object {
		m.Content = string(events.MaskJSON(json.RawMessage(m.Content)))
	} else {
		m.Content = events.Mask(m.Content)
	}
	meta.StartURL = events.Mask(meta.StartURL)
	if t := meta.Tool; t != nil {
		meta.Tool = &ToolCall{events.Mask(t.Name), events.MaskJSON(t.Arguments), events.MaskJSON(t.Result)}
	}
	m.Metadata = profiles.JSON(meta)
	return nil
}

// execution returns the state of the task after a message of a type was recorded.
func execution(messageType string) profiles.Execution {
	switch messageType {
	case "QUESTION":
		return profiles.ExecutionWaiting
	case TypeDone:
		return profiles.ExecutionFinished
	case "ERROR":
		return profiles.ExecutionError
	default:
		return profiles.ExecutionRunning
	}
}

// effect returns what a stored message changes in its session.
func (m MessageRequest) effect(stored profiles.Message, now profiles.Execution) Effect {
	data := events.Fields{"id": stored.ID, "type": stored.Type, "role": roleOf(stored.Type), "content": content(stored.Content, m.Object)}
	if m.StartURL != "" {
		data["start_url"] = m.StartURL
	}
	if t := m.Tool; t != nil {
		data["name"] = t.Name
		if t.Arguments != nil {
			data["arguments"] = t.Arguments
		}
		if t.Result != nil {
			data["result"] = t.Result
		}
	}
	return Effect{Execution: now, Event: events.Message, Data: data, TurnEnded: endsTurn(stored.Type)}
}

// endsTurn reports whether a message of a type ends a turn of the conversation: the user
// has spoken, or the agent has answered. The others are steps of a turn.
func endsTurn(messageType string) bool {
	switch messageType {
	case TypeUser, "QUESTION", TypeDone, "ERROR":
		return true
	default:
		return false
	}
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
