package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/events"
)

// messagePage is how many messages one answer has at most.
const messagePage = 1000

// MessengerConfig is what NewMessenger needs.
type MessengerConfig struct {
	Sessions Sessions
	Driver   Driver
	Store    MessageStore
	Tasks    TaskStore
	Notices  Notices
	Masks    Turns // shared with [events.Reader]
	Now      func() time.Time
}

// Messenger records the conversation between a user and the agent that drives a session.
// Its methods are safe for concurrent use.
type Messenger struct {
	sessions Sessions
	driver   Driver
	store    MessageStore
	tasks    TaskStore
	notices  Notices
	masks    Turns
	now      func() time.Time
}

// NewMessenger makes a Messenger.
func NewMessenger(c MessengerConfig) *Messenger {
	return &Messenger{c.Sessions, c.Driver, c.Store, c.Tasks, c.Notices, c.Masks, c.Now}
}

// Send records a message. When it returns, the message and its event are on disk.
// Followers therefore see every confirmed message, even after a crash of the daemon. If
// no agent is attached, a message for the agent is the error no_agent_attached, and
// nothing is recorded. A message with a type is recorded even after the session's end,
// but without an event, because there is no current run.
func (m *Messenger) Send(ctx context.Context, c access.Caller, id string, r MessageRequest) (Message, error) {
	stored, err := m.send(ctx, c, id, r)
	return messageOf(stored), err
}

func (m *Messenger) send(ctx context.Context, c access.Caller, id string, r MessageRequest) (profiles.Message, error) {
	l, err := m.sessions.Running(ctx, c, id)
	ended := fault.Is(err, fault.SessionNotRunning)
	switch {
	case ended && r.Type == "":
		return profiles.Message{}, fault.New(fault.SessionNotRunning, "agent.message", "session %s has ended; resume it first", id)
	case ended && r.StartURL == "":
		return m.sendAfterEnd(ctx, id, r)
	case err != nil:
		return profiles.Message{}, err
	}
	if r.Type == "" { // the agent needs the browser
		l.AwaitRestart(ctx)
	}
	if r.StartURL != "" {
		now, err := l.State(ctx)
		if err == nil {
			err = r.checkAgent(now)
		}
		if err != nil {
			return profiles.Message{}, err
		}
		if _, err := m.driver.Navigate(ctx, c, id, r.StartURL); err != nil {
			return profiles.Message{}, err
		}
	}
	var stored profiles.Message
	err = l.Update(ctx, Update{
		Begin: func(now State) (bool, error) {
			err := r.checkAgent(now)
			return err == nil, err
		},
		Write: func(within context.Context) (Effect, error) {
			// Do not write if ctx ends before the update's turn.
			within, cancel := context.WithCancel(within)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			var err error
			stored, err = m.add(within, id, r)
			return r.effect(stored), err
		},
	})
	if fault.Is(err, fault.SessionNotRunning) && r.Type != "" { // it ended after Running returned it
		return m.sendAfterEnd(ctx, id, r)
	}
	if err != nil {
		return profiles.Message{}, err
	}
	return stored, nil
}

// sendAfterEnd records a message after its session's end. If the session was resumed
// meanwhile, the message takes effect there.
func (m *Messenger) sendAfterEnd(ctx context.Context, id string, r MessageRequest) (profiles.Message, error) {
	stored, err := m.add(ctx, id, r)
	if err != nil {
		return stored, err
	}
	if l := m.sessions.Live(id); l != nil {
		l.Apply(ctx, r.effect(stored))
	}
	return stored, nil
}

// checkAgent returns an error for a message to an agent that is not attached.
func (m MessageRequest) checkAgent(now State) error {
	switch {
	case m.Type != "":
		return nil
	case now.Unusable != nil:
		return now.Unusable
	case !now.HasAgent:
		return fault.New(fault.NoAgentAttached, "agent.message",
			"no client follows the session's events and the session has no webhook_url; attach an agent, or set type to record the message only")
	}
	return nil
}

func (m *Messenger) add(ctx context.Context, id string, r MessageRequest) (profiles.Message, error) {
	kind := cmp.Or(r.Type, "USER")
	defer m.notices.Wake()
	return m.store.AddMessage(ctx, profiles.Message{SessionID: id, Notices: m.notices.Message(kind), Type: kind, Content: r.Content,
		Metadata: profiles.JSON(messageMetadata{r.StartURL}), At: m.now().UTC()}, execution(kind))
}

// Messages returns a session's conversation after a message, also for an ended session.
// Secrets are masked as in events, unless secrets is set, which needs the right to secrets.
func (m *Messenger) Messages(ctx context.Context, c access.Caller, id string, after int64, secrets bool) (Conversation, error) {
	if _, err := m.sessions.Record(ctx, c, id, access.Look); err != nil {
		return Conversation{}, err
	}
	if err := events.RequireSecrets(c, secrets); err != nil {
		return Conversation{}, err
	}
	rec, hasAgent, err := m.sessions.Describe(ctx, c, id)
	if err != nil {
		return Conversation{}, err
	}
	page, more, err := m.store.Messages(ctx, id, after, messagePage)
	if err != nil {
		return Conversation{}, err
	}
	if !secrets && len(page) > 0 {
		leave, err := m.masks.Take(ctx, c.UserID)
		if err != nil {
			return Conversation{}, err
		}
		defer leave()
		for i := range page {
			if err := ctx.Err(); err != nil {
				return Conversation{}, fault.Wrap(err, fault.Timeout, "agent.messages", "the request ended before the work was done")
			}
			if err := maskMessage(&page[i]); err != nil {
				return Conversation{}, err
			}
		}
	}
	conversation := Conversation{Messages: make([]Message, 0, len(page)), More: more, Status: StatusOf(rec), HasAgent: hasAgent}
	for _, one := range page {
		conversation.Messages = append(conversation.Messages, messageOf(one))
	}
	return conversation, nil
}

func maskMessage(m *profiles.Message) error {
	var meta messageMetadata
	if len(m.Metadata) > 0 {
		if err := json.Unmarshal(m.Metadata, &meta); err != nil {
			return fault.Wrap(err, fault.StoreFailed, "agent.messages", "a stored message cannot be read")
		}
	}
	meta.StartURL = events.Mask(meta.StartURL)
	m.Content, m.Metadata = events.Mask(m.Content), profiles.JSON(meta)
	return nil
}

// Cancel stops the task of the agent that drives the session, and reports whether one was
// running. The task is then finished, and an event reports that. The browser keeps
// running.
func (m *Messenger) Cancel(ctx context.Context, c access.Caller, id string) (cancelled bool, err error) {
	l, err := m.sessions.Running(ctx, c, id)
	if err != nil {
		return false, err
	}
	var running bool
	err = l.Update(ctx, Update{
		Begin: func(now State) (bool, error) {
			running = now.Execution == profiles.ExecutionRunning || now.Execution == profiles.ExecutionWaiting ||
				now.Execution == "" && now.Followed
			return running, nil
		},
		Write: func(ctx context.Context) (Effect, error) {
			defer m.notices.Wake()
			_, err := m.tasks.UpdateSession(ctx, id, func(r *profiles.Session) error {
				was := *r
				r.Execution = profiles.ExecutionFinished
				r.Notices = m.notices.Task(was, *r)
				return nil
			})
			return Effect{Execution: profiles.ExecutionFinished, Event: events.Cancelled}, err
		},
	})
	if err != nil {
		return false, err
	}
	return running, nil
}
