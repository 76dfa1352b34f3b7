package agent

import (
	"cmp"
	"context"
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
// no agent is attached, a message for the agent waits for one that comes later. A message
// with a type is recorded even after the session's end, but without an event, because
// there is no current run.
func (m *Messenger) Send(ctx context.Context, c access.Caller, id string, r MessageRequest) (Sent, error) {
	stored, hasAgent, err := m.send(ctx, c, id, r)
	if err != nil {
		return Sent{}, err
	}
	answer, err := messageOf(stored)
	return Sent{answer, hasAgent}, err
}

func (m *Messenger) send(ctx context.Context, c access.Caller, id string, r MessageRequest) (stored profiles.Message, hasAgent bool, err error) {
	l, err := m.sessions.Running(ctx, c, id)
	ended := fault.Is(err, fault.SessionNotRunning)
	switch {
	case ended && r.Type == "":
		return stored, false, fault.New(fault.SessionNotRunning, "agent.message", "session %s has ended; resume it first", id)
	case ended && r.StartURL == "":
		stored, err = m.sendAfterEnd(ctx, id, r)
		return stored, false, err
	case err != nil:
		return stored, false, err
	}
	if r.Type == "" { // the agent needs the browser
		l.AwaitRestart(ctx)
	}
	if r.StartURL != "" {
		now, err := l.State(ctx)
		if err == nil {
			err = r.checkBrowser(now)
		}
		if err != nil {
			return stored, false, err
		}
		if _, err := m.driver.Navigate(ctx, c, id, r.StartURL); err != nil {
			return stored, false, err
		}
	}
	err = l.Update(ctx, Update{
		Begin: func(now State) (bool, error) {
			hasAgent = now.HasAgent
			err := r.checkBrowser(now)
			return err == nil, err
		},
		Write: func(within context.Context) (Effect, error) {
			// Do not write if ctx ends before the update's turn.
			within, cancel := context.WithCancel(within)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			task := execution(r.Type)
			if r.Type == "" && !hasAgent {
				task = profiles.ExecutionWaitingForAgent
			}
			var err error
			stored, err = m.add(within, id, r, task)
			return r.effect(stored, task), err
		},
	})
	if fault.Is(err, fault.SessionNotRunning) && r.Type != "" { // it ended after Running returned it
		stored, err = m.sendAfterEnd(ctx, id, r)
		return stored, false, err
	}
	if fault.Is(err, fault.NodeUnavailable) && r.StartURL != "" { // a repeat would open it again
		err = fault.New(fault.NodeUnavailable, "agent.message", "start_url was opened, but the message was not recorded, because the session began to move to another node; look before you try again")
	}
	return stored, hasAgent, err
}

// sendAfterEnd records a message after its session's end. If the session was resumed
// meanwhile, the message takes effect there.
func (m *Messenger) sendAfterEnd(ctx context.Context, id string, r MessageRequest) (profiles.Message, error) {
	task := execution(r.Type)
	stored, err := m.add(ctx, id, r, task)
	if err != nil {
		return stored, err
	}
	if l := m.sessions.Live(id); l != nil {
		l.Apply(ctx, r.effect(stored, task))
	}
	return stored, nil
}

// checkBrowser returns an error for a message to an agent that could not use the browser.
func (m MessageRequest) checkBrowser(now State) error {
	if m.Type != "" {
		return nil
	}
	return now.Unusable
}

func (m *Messenger) add(ctx context.Context, id string, r MessageRequest, task profiles.Execution) (profiles.Message, error) {
	kind := cmp.Or(r.Type, TypeUser)
	defer m.notices.Wake()
	return m.store.AddMessage(ctx, profiles.Message{SessionID: id, Notices: m.notices.Message(kind), Type: kind, Content: r.Content,
		Metadata: profiles.JSON(messageMetadata{publicMetadata{r.StartURL}, r.Object, r.Tool}), At: m.now().UTC()}, task)
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
	conversation := Conversation{Messages: make([]Message, 0, len(page)), More: more, Status: StatusOf(rec, hasAgent), HasAgent: hasAgent}
	for _, one := range page {
		answer, err := messageOf(one)
		if err != nil {
			return Conversation{}, err
		}
		conversation.Messages = append(conversation.Messages, answer)
	}
	return conversation, nil
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
			switch now.Execution {
			case profiles.ExecutionRunning, profiles.ExecutionWaiting, profiles.ExecutionWaitingForAgent:
				running = true
			case "":
				running = now.Followed
			}
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
