package events

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/wire"
)

// The events that webhooks are sent. docs/sessions.md lists them.
const (
	HookCreated = "session.created"
	HookStatus  = "session.status_changed"
	HookSaved   = "session.saved"
	HookCrashed = "session.crashed"
	HookDeleted = "session.deleted"
	HookExpired = "user.login_expired" // sent for the session that the default came from
	hookMessage = "task.message"       // there is a message for the agent
)

// taskEvents are the events for the states of an agent's task.
var taskEvents = map[profiles.Execution]string{
	profiles.ExecutionRunning: "task.started", profiles.ExecutionWaiting: "task.waiting_for_input",
	profiles.ExecutionFinished: "task.finished", profiles.ExecutionError: "task.error",
}

// EndEvents returns the events of a session's end. With crash set they include a crash
// that webhooks were not notified of before.
func EndEvents(crash bool) []string {
	if crash {
		return []string{HookStatus, HookCrashed, HookDeleted}
	}
	return []string{HookStatus, HookDeleted}
}

// NoticesConfig is what NewNotices needs.
type NoticesConfig struct {
	URL string // the daemon's own webhook, for every session; "": none
	// Session returns the body for webhooks. It must contain nothing that lets a receiver
	// connect to the session.
	Session func(profiles.Session) json.RawMessage
	Wake    func() // wakes the sender after a commit; nil: there is none
	Now     func() time.Time
}

// Notices makes what webhooks are sent about a session: the daemon's webhook and the
// session's own. The catalogue queues the notices in the same transaction as the change
// that they report. Its methods are safe for concurrent use.
type Notices struct {
	cfg  NoticesConfig
	used atomic.Bool // there has been a notice
}

// NewNotices makes Notices.
func NewNotices(c NoticesConfig) *Notices { return &Notices{cfg: c} }

// hookBody is the body that a webhook is sent.
type hookBody struct {
	Event     string          `json:"event"`
	Timestamp time.Time       `json:"timestamp"`
	Session   json.RawMessage `json:"session"`
}

// Of returns the notices of events for a session in its current state. It may be called
// inside a transaction.
func (n *Notices) Of(rec profiles.Session, events ...string) []profiles.Notice {
	var all []profiles.Notice
	if rec.WebhookURL == "" && n.cfg.URL == "" {
		return nil
	}
	n.used.Store(true)
	now := n.cfg.Now().UTC()
	for _, event := range events {
		body, err := wire.Marshal(hookBody{event, now, n.cfg.Session(rec)})
		if err != nil {
			panic(err) // Session returned invalid JSON
		}
		if rec.WebhookURL != "" {
			all = append(all, profiles.Notice{ID: profiles.NewID(), URL: rec.WebhookURL, Event: event, Body: body, At: now})
		}
		if u := n.cfg.URL; u != "" && u != rec.WebhookURL {
			all = append(all, profiles.Notice{ID: profiles.NewID(), URL: u, Operator: true, Event: event, Body: body, At: now})
		}
	}
	return all
}

// For wraps [Notices.Of] for [profiles.End.Notices] and [profiles.Commit.Notices].
func (n *Notices) For(events ...string) func(profiles.Session) []profiles.Notice {
	return func(rec profiles.Session) []profiles.Notice { return n.Of(rec, events...) }
}

// Task returns the notices of a change of a task's state. A task that continues after an
// answered question has not started again, and one that waits for an agent has not
// started yet, so there is none.
func (n *Notices) Task(was, now profiles.Session) []profiles.Notice {
	switch {
	case was.Execution == now.Execution, now.Execution == profiles.ExecutionWaitingForAgent,
		was.Execution == profiles.ExecutionWaiting && now.Execution == profiles.ExecutionRunning:
		return nil
	}
	return n.Of(now, taskEvents[now.Execution])
}

// Message returns the notices of what a message does to the task, and of a message for
// the agent. An answer to a question does not start the task again.
func (n *Notices) Message(kind string) func(was, now profiles.Session) []profiles.Notice {
	return func(was, now profiles.Session) []profiles.Notice {
		all := n.Task(was, now)
		if kind == "USER" {
			all = append(all, n.Of(now, hookMessage)...)
		}
		return all
	}
}

// Wake wakes the sender to send what was queued. It does nothing before the first notice.
func (n *Notices) Wake() {
	if n.cfg.Wake != nil && n.used.Load() {
		n.cfg.Wake()
	}
}
