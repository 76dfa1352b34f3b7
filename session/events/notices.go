package events

import (
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// The events that webhooks are notified of. docs/sessions.md lists them.
const (
	HookCreated = "session.created"
	HookStatus  = "session.status_changed"
	HookSaved   = "session.saved"
	HookCrashed = "session.crashed"
	HookDeleted = "session.deleted"
	HookExpired = "user.login_expired" // of the session that the default came from
	hookMessage = "task.message"       // there is one for the agent
)

// taskEvents are those of how an agent's task stands.
var taskEvents = map[profiles.Execution]string{
	profiles.ExecutionRunning: "task.started", profiles.ExecutionWaiting: "task.waiting_for_input",
	profiles.ExecutionFinished: "task.finished", profiles.ExecutionError: "task.error",
}

// EndEvents are the events of a session's end. With crash they also tell of a crash
// that webhooks were not notified of before.
func EndEvents(crash bool) []string {
	if crash {
		return []string{HookStatus, HookCrashed, HookDeleted}
	}
	return []string{HookStatus, HookDeleted}
}

// NoticesConfig is what [Notices] are made of.
type NoticesConfig struct {
	URL string // the daemon's own webhook, notified of every session; "": none
	// Session is a session as webhooks get it. It must hold nothing that lets anybody
	// connect.
	Session func(profiles.Session) json.RawMessage
	Wake    func() // has the sender look at what was written; nil: nobody sends
	Now     func() time.Time
}

// Notices make what webhooks are sent of a session: the daemon's webhook and the
// session's own. The catalogue queues them in the transaction of the change that they
// tell of. Its methods are safe for concurrent use.
type Notices struct{ cfg NoticesConfig }

// NewNotices makes Notices.
func NewNotices(c NoticesConfig) *Notices { return &Notices{c} }

// hookBody is what a webhook is sent.
type hookBody struct {
	Event     string          `json:"event"`
	Timestamp time.Time       `json:"timestamp"`
	Session   json.RawMessage `json:"session"`
}

// Of are the notices of events for a session as it is now. It may run inside a
// transaction.
func (n *Notices) Of(rec profiles.Session, events ...string) []profiles.Notice {
	var all []profiles.Notice
	now := n.cfg.Now().UTC()
	for _, event := range events {
		body, err := json.Marshal(hookBody{event, now, n.cfg.Session(rec)})
		if err != nil {
			panic(err) // Session gave no JSON
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

// For is [Notices.Of] for [profiles.End.Notices] and [profiles.Commit.Notices].
func (n *Notices) For(events ...string) func(profiles.Session) []profiles.Notice {
	return func(rec profiles.Session) []profiles.Notice { return n.Of(rec, events...) }
}

// Task are the notices of a task that stands otherwise than before. A task that goes
// on after a question was not started again.
func (n *Notices) Task(was, now profiles.Session) []profiles.Notice {
	if was.Execution == now.Execution || was.Execution == profiles.ExecutionWaiting && now.Execution == profiles.ExecutionRunning {
		return nil
	}
	return n.Of(now, taskEvents[now.Execution])
}

// Message are the notices of what a message does to the task, and of a message that
// is for the agent. An answer to a question does not start the task again.
func (n *Notices) Message(kind string) func(was, now profiles.Session) []profiles.Notice {
	return func(was, now profiles.Session) []profiles.Notice {
		all := n.Task(was, now)
		if kind == "USER" {
			all = append(all, n.Of(now, hookMessage)...)
		}
		return all
	}
}

// Wake has the sender look at what was written.
func (n *Notices) Wake() {
	if n.cfg.Wake != nil {
		n.cfg.Wake()
	}
}
