package session

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/journal"
)

// MessageTypes are the types of messages, those of the session API.
var MessageTypes = []string{"USER", "THOUGHT", "QUESTION", "DONE", "ERROR", "LOG"}

// messagePage is how many messages are given at once, at most.
const messagePage = 1000

// maxMasking bounds how many pages of messages or events are masked at once: one
// of 4 MiB takes seconds.
const maxMasking = 2

// Say is a message that is to be recorded.
type Say struct {
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
	return Message{m.ID, m.Type, m.Content, m.At.UTC(), orObject(m.Metadata)}
}

// orObject is a document, or an empty one where there is none.
func orObject(document json.RawMessage) json.RawMessage {
	if len(document) == 0 {
		return json.RawMessage("{}")
	}
	return document
}

// Conversation is a part of a session's messages, in order, and how its task stands.
type Conversation struct {
	Messages []Message
	More     bool // others follow
	Status   StatusAnswer
	HasAgent bool
}

// messageMetadata is what is kept of a message besides its words.
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

// Say records a message; when it returns, that is on disk, and the event that
// tells of it: who follows the session hears of all that was answered, whatever
// becomes of the daemon. One for the agent is no_agent_attached where nobody
// follows the session, and nothing has happened.
// What an ended session's agent still says is recorded too, without an event: no
// run is going on that it could be one of.
func (s *Service) Say(ctx context.Context, c access.Caller, id string, m Say) (Message, error) {
	said, err := s.say(ctx, c, id, m)
	return messageOf(said), err
}

func (s *Service) say(ctx context.Context, c access.Caller, id string, m Say) (profiles.Message, error) {
	l, err := s.running(ctx, c, id, access.Drive)
	ended := fault.Is(err, fault.SessionNotRunning)
	switch {
	case ended && m.Type == "":
		return profiles.Message{}, fault.New(fault.SessionNotRunning, "session.message", "session %s has ended; resume it first", id)
	case ended && m.StartURL == "":
		return s.sayAfter(ctx, id, m)
	case err != nil:
		return profiles.Message{}, err
	}
	if m.Type == "" { // for whoever drives the browser
		l.awaitRestart(ctx)
	}
	if m.StartURL != "" {
		if err := l.ask(ctx, func() error { return l.hears(m) }); err != nil {
			return profiles.Message{}, err
		}
		if _, err := s.Navigate(ctx, c, id, m.StartURL); err != nil {
			return profiles.Message{}, err
		}
	}
	var said profiles.Message
	err = l.askAndWait(ctx, func(reply func(error)) {
		l.say(ctx, m, func(kept profiles.Message, err error) {
			said = kept
			reply(err)
		})
	})
	s.journal.Flush(ctx, id)
	if fault.Is(err, fault.SessionNotRunning) && m.Type != "" { // it has ended between the two looks
		return s.sayAfter(ctx, id, m)
	}
	if err != nil {
		return profiles.Message{}, err
	}
	return said, nil
}

// sayAfter records what is said after a session's end. Where it was resumed
// meanwhile, the session that lives is told as if it had been said in it.
func (s *Service) sayAfter(ctx context.Context, id string, m Say) (profiles.Message, error) {
	said, err := s.keepMessage(ctx, id, m)
	if err != nil {
		return said, err
	}
	if l := s.find(id); l != nil {
		// One that has ended again has nobody to tell, and the message is kept.
		_ = l.ask(context.WithoutCancel(ctx), func() error {
			l.tell(said, m)
			var now profiles.Session
			l.records.do(func(ctx context.Context) (err error) {
				now, err = s.Catalogue.Session(ctx, id)
				return err
			}, func(err error) {
				if err == nil { // others may have been quicker
					l.rec.Execution = now.Execution
				}
			})
			return nil
		})
		s.journal.Flush(ctx, id)
	}
	return said, nil
}

// hears refuses a message for an agent that is not there.
func (l *live) hears(m Say) error {
	if m.Type != "" {
		return nil
	}
	if err := l.usable(); err != nil {
		return err
	}
	if !l.hasAgent() {
		return fault.New(fault.NoAgentAttached, "session.message",
			"nobody follows the session's events, and it has no webhook_url; attach an agent, or give the message a type to have it recorded")
	}
	return nil
}

// hasAgent reports whether somebody follows the session, or has a webhook told of it.
func (l *live) hasAgent() bool { return l.rec.WebhookURL != "" || l.svc.journal.Followed(l.id) }

// say records a message and tells it, in the same order. It is not recorded where ctx
// ends before its turn.
func (l *live) say(ctx context.Context, m Say, end func(profiles.Message, error)) {
	var said profiles.Message
	l.records.add(task{
		begin: func() (func(context.Context) error, error) {
			return func(within context.Context) (err error) {
				within, cancel := context.WithCancel(within)
				defer cancel()
				defer context.AfterFunc(ctx, cancel)()
				said, err = l.svc.keepMessage(within, l.id, m)
				return err
			}, l.hears(m)
		},
		end: func(err error) {
			if err == nil {
				l.tell(said, m)
			}
			end(said, err)
		},
	})
}

// tell has a message that is on disk move the task, and tells it.
func (l *live) tell(said profiles.Message, m Say) {
	l.rec.Execution = execution(said.Type)
	data := journal.Fields{"id": said.ID, "type": said.Type, "content": said.Content}
	if m.StartURL != "" {
		data["start_url"] = m.StartURL
	}
	l.writer.Record(journal.Message, data)
	l.touch()
}

func (s *Service) keepMessage(ctx context.Context, id string, m Say) (profiles.Message, error) {
	kind := cmp.Or(m.Type, "USER")
	defer s.told()
	return s.Catalogue.AddMessage(ctx, profiles.Message{SessionID: id, Notices: s.messageNotices(kind), Type: kind, Content: m.Content,
		Metadata: encode(messageMetadata{m.StartURL}), At: s.Now().UTC()}, execution(kind))
}

// Messages gives a session's conversation after a message, that of an ended one
// too. Secrets are masked as in events, unless whole asks for them, which needs
// the right to.
func (s *Service) Messages(ctx context.Context, c access.Caller, id string, after int64, whole bool) (Conversation, error) {
	if err := s.mayRead(ctx, c, id, whole); err != nil {
		return Conversation{}, err
	}
	info, err := s.Get(ctx, c, id)
	if err != nil {
		return Conversation{}, err
	}
	talk := Conversation{Status: statusOf(info.Session), HasAgent: info.HasAgent}
	page, more, err := s.Catalogue.Messages(ctx, id, after, messagePage)
	if err != nil {
		return Conversation{}, err
	}
	if !whole && len(page) > 0 {
		leave, err := s.masks.Take(ctx, c.UserID)
		if err != nil {
			return Conversation{}, err
		}
		defer leave()
		for i := range page {
			if err := ctx.Err(); err != nil {
				return Conversation{}, givenUp(err)
			}
			if err := maskMessage(&page[i]); err != nil {
				return Conversation{}, err
			}
		}
	}
	talk.Messages, talk.More = each(page, messageOf), more
	return talk, nil
}

func maskMessage(m *profiles.Message) error {
	var meta messageMetadata
	if len(m.Metadata) > 0 {
		if err := json.Unmarshal(m.Metadata, &meta); err != nil {
			return fault.Wrap(err, fault.StoreFailed, "session.messages", "a recorded message cannot be read")
		}
	}
	meta.StartURL = journal.Mask(meta.StartURL)
	m.Content, m.Metadata = journal.Mask(m.Content), encode(meta)
	return nil
}

// Cancel stops the task of the agent that drives the session: the task is
// finished, and who follows the session hears that. The browser runs on.
func (s *Service) Cancel(ctx context.Context, c access.Caller, id string) (Acknowledged, error) {
	a := Acknowledged{Success: true, Status: "cancelled", Message: "no task is running; the browser runs on"}
	l, err := s.running(ctx, c, id, access.Drive)
	if err != nil {
		return a, err
	}
	var going bool
	err = l.askAndWait(ctx, func(reply func(error)) {
		l.records.add(task{
			begin: func() (func(context.Context) error, error) {
				going = l.rec.Execution == profiles.ExecutionRunning || l.rec.Execution == profiles.ExecutionWaiting ||
					l.rec.Execution == "" && s.journal.Followed(id)
				if !going {
					return nil, nil
				}
				return func(ctx context.Context) error { return s.recordCancel(ctx, id) }, nil
			},
			end: func(err error) {
				if err == nil && going {
					l.rec.Execution = profiles.ExecutionFinished
					l.writer.Record(journal.Cancelled, nil)
					l.touch()
				}
				reply(err)
			},
		})
	})
	if err == nil && going {
		a.Message = "the task is cancelled; the browser runs on"
	}
	s.journal.Flush(ctx, id)
	return a, err
}

func (s *Service) recordCancel(ctx context.Context, id string) error {
	defer s.told()
	_, err := s.Catalogue.UpdateSession(ctx, id, func(r *profiles.Session) error {
		was := *r
		r.Execution = profiles.ExecutionFinished
		r.Notices = s.taskNotices(was, *r)
		return nil
	})
	return err
}

// statusOf tells how a session is, and how its task stands: as was said last, or
// as the session itself, where nobody said.
func statusOf(rec profiles.Session) StatusAnswer {
	task := cmp.Or(rec.Execution, profiles.ExecutionRunning)
	if rec.Status.Ended() && task != profiles.ExecutionFinished && task != profiles.ExecutionError {
		task = profiles.ExecutionFinished // nobody goes on with it
		if rec.Status == profiles.StatusError {
			task = profiles.ExecutionError
		}
	}
	a := StatusAnswer{Status: string(rec.Status), SessionStatus: string(rec.Status), ExecutionStatus: string(task)}
	switch {
	case rec.Status == profiles.StatusError, rec.Status == profiles.StatusPaused:
	case rec.Status.Ended(), rec.Execution != "":
		a.Status = string(task)
	case rec.Status == profiles.StatusInitializing:
		a.Status = string(profiles.StatusReady)
	}
	return a
}
