package profiles

import (
	"context"
	"encoding/json"
	"time"
)

// Execution is how the task of the agent that drives a session stands.
type Execution string

// The execution statuses of the session API.
const (
	ExecutionRunning  Execution = "running"
	ExecutionWaiting  Execution = "waiting_for_input" // a question was asked
	ExecutionFinished Execution = "finished"
	ExecutionError    Execution = "error"
)

// Message is one entry of the conversation between a user and the agent that
// drives a session.
type Message struct {
	SessionID string
	ID        int64 // 1, 2, … within the session, given by the catalogue
	Type      string
	Content   string
	Metadata  json.RawMessage // kept byte for byte; nil: none
	At        time.Time
	// Notices makes what webhooks are told of it, from the session before it and as
	// it is with it. It is called inside the transaction and must not block; nil: nothing.
	Notices func(was, now Session) []Notice
}

// MaxMessagePage bounds the contents of a page, in bytes; a page has one
// message at least.
const MaxMessagePage = 4 << 20

// MessageStore keeps the conversations of sessions.
type MessageStore interface {
	// AddMessage appends to a session's conversation and gives the message its ID;
	// in the same transaction execution, unless it is "", becomes the session's
	// execution status. A session that is not there is session_not_found.
	AddMessage(ctx context.Context, m Message, execution Execution) (Message, error)
	// Messages lists those of a session after an ID, in order, at most limit and
	// [MaxMessagePage]; more tells that others follow. An after that is beyond the
	// last one has nothing after it. A session that is not there has none.
	Messages(ctx context.Context, sessionID string, after int64, limit int) (page []Message, more bool, err error)
}
