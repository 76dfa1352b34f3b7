package profiles

import (
	"context"
	"encoding/json"
	"time"
)

// Execution is the state of the task of the agent that drives a session.
type Execution string

// The execution statuses of the session API.
const (
	ExecutionRunning         Execution = "running"
	ExecutionWaiting         Execution = "waiting_for_input" // the agent has asked a question
	ExecutionWaitingForAgent Execution = "waiting_for_agent" // a message came before an agent; ours
	ExecutionFinished        Execution = "finished"
	ExecutionError           Execution = "error"
)

// Message is one entry of the conversation between a user and the agent that drives a
// session.
type Message struct {
	SessionID string
	ID        int64 // 1, 2, … within the session; set by the catalogue
	Type      string
	Content   string
	Metadata  json.RawMessage // stored byte for byte; nil if there is none
	At        time.Time
	// Notices returns the notices of the message, from the session before and after it. It
	// is called inside the transaction and must not block. nil means no notices.
	Notices func(was, now Session) []Notice
}

// MaxMessagePage limits the contents of a page, in bytes. A page has at least one
// message.
const MaxMessagePage = 4 << 20

// MessageStore keeps the conversations of sessions.
type MessageStore interface {
	// AddMessage appends to a session's conversation and sets the message's ID. Unless
	// execution is "", it becomes the session's execution status in the same transaction.
	// An unknown session is session_not_found.
	AddMessage(ctx context.Context, m Message, execution Execution) (Message, error)
	// Messages lists the messages of a session's conversation after an ID, in order, up to
	// limit and [MaxMessagePage]. Messages that a resume took back are left out; see
	// [Session.Continues]. more reports that others follow. If after is beyond the last
	// message, or the session is unknown, the list is empty.
	Messages(ctx context.Context, sessionID string, after int64, limit int) (page []Message, more bool, err error)
}
