package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// The events that webhooks are told.
const (
	hookCreated = "session.created"
	hookStatus  = "session.status_changed"
	hookSaved   = "session.saved"
	hookCrashed = "session.crashed"
	hookDeleted = "session.deleted"
	hookMessage = "task.message"       // there is one for the agent
	hookExpired = "user.login_expired" // of the session that the default came from
)

// keepDeliveries is how long the record of a delivery stays once it is settled.
const keepDeliveries = 7 * 24 * time.Hour

// hookBody is what a webhook is sent.
type hookBody struct {
	Event     string          `json:"event"`
	Timestamp time.Time       `json:"timestamp"`
	Session   json.RawMessage `json:"session"`
}

// notices makes what webhooks are told of a session as it is: the daemon's and
// its own. It may run inside a transaction.
func (s *Service) notices(rec profiles.Session, events ...string) []profiles.Notice {
	var all []profiles.Notice
	now := s.Now().UTC()
	for _, event := range events {
		body := encode(hookBody{event, now, hookSession(rec)})
		if rec.WebhookURL != "" {
			all = append(all, profiles.Notice{ID: profiles.NewID(), URL: rec.WebhookURL, Event: event, Body: body, At: now})
		}
		if u := s.cfg.WebhookURL; u != "" && u != rec.WebhookURL {
			all = append(all, profiles.Notice{ID: profiles.NewID(), URL: u, Operator: true, Event: event, Body: body, At: now})
		}
	}
	return all
}

// hookSession is a session as webhooks are told it: as on the wire, without what
// lets anybody connect and what agents noted.
func hookSession(rec profiles.Session) json.RawMessage {
	answer := Info{Session: rec, HasAgent: rec.WebhookURL != ""}.Answer()
	if answer.Restored != nil {
		answer.Restored.Notes = nil // Answer has made it a copy
	}
	return encode(answer)
}

// taskEvents are those of how an agent's task stands.
var taskEvents = map[profiles.Execution]string{
	profiles.ExecutionRunning: "task.started", profiles.ExecutionWaiting: "task.waiting_for_input",
	profiles.ExecutionFinished: "task.finished", profiles.ExecutionError: "task.error",
}

// taskNotices tells of a task that stands otherwise than before. One that goes on
// after a question was not started again.
func (s *Service) taskNotices(was, now profiles.Session) []profiles.Notice {
	if was.Execution == now.Execution || was.Execution == profiles.ExecutionWaiting && now.Execution == profiles.ExecutionRunning {
		return nil
	}
	return s.notices(now, taskEvents[now.Execution])
}

// messageNotices tells of a message's effect on the task, and an agent that there
// is one for it: an answer to its question does not start the task again.
func (s *Service) messageNotices(kind string) func(was, now profiles.Session) []profiles.Notice {
	return func(was, now profiles.Session) []profiles.Notice {
		all := s.taskNotices(was, now)
		if kind == "USER" {
			all = append(all, s.notices(now, hookMessage)...)
		}
		return all
	}
}

// telling is for [profiles.End.Notices] and [profiles.Commit.Notices].
func (s *Service) telling(events ...string) func(profiles.Session) []profiles.Notice {
	return func(rec profiles.Session) []profiles.Notice { return s.notices(rec, events...) }
}

// endEvents are told of a session's end: of a crash too that could not be told of before.
func endEvents(crash bool) []string {
	if crash {
		return []string{hookStatus, hookCrashed, hookDeleted}
	}
	return []string{hookStatus, hookDeleted}
}

// told has the sender look at what was written.
func (s *Service) told() {
	if s.Told != nil {
		s.Told()
	}
}

// endSession ends a session without a snapshot, and webhooks hear of it, and of a
// crash if it says so.
func (s *Service) endSession(ctx context.Context, e profiles.End, crash bool) error {
	e.Notices = s.telling(endEvents(crash)...)
	err := s.Catalogue.EndSession(ctx, e)
	s.told()
	return err
}

// Delivery is what a caller is told of a webhook that was sent, or is to be.
type Delivery struct {
	ID        string // stays the same over retries
	SessionID string
	UserID    string
	URL       string
	Event     string
	State     string // pending | delivered | failed
	Attempts  int
	LastError string // of the last attempt; "" where it was delivered
	At        time.Time
	LastAt    time.Time // of the last attempt; zero: none was made
	NextAt    time.Time // of the next attempt; zero unless it is pending
}

func deliveryOf(d profiles.Delivery) Delivery {
	told := Delivery{ID: d.ID, SessionID: d.SessionID, UserID: d.UserID, URL: d.URL, Event: d.Event, State: string(d.State),
		Attempts: d.Attempts, LastError: d.LastError, At: d.At.UTC(), LastAt: d.LastAt}
	if d.State == profiles.DeliveryPending {
		told.NextAt = d.NextAt
	}
	return told
}

// Deliveries gives a page of what webhooks were told, or are to be, newest first:
// in the state, "" for every one, of the caller's sessions, and what went to the daemon's own URL for admins alone.
func (s *Service) Deliveries(ctx context.Context, c access.Caller, state string, limit int, startAfter string) ([]Delivery, string, error) {
	if err := c.Require(access.Look); err != nil {
		return nil, "", err
	}
	f := profiles.DeliveryFilter{UserID: c.UserID, Operator: c.May(access.Administer), State: profiles.DeliveryState(state), Limit: limit, StartAfter: startAfter}
	if c.ForEveryUser() {
		f.UserID = ""
	}
	page, next, err := s.Catalogue.DeliveryPage(ctx, f)
	return each(page, deliveryOf), next, err
}

// Resend has a delivery sent once more, whatever became of it, under its old ID.
func (s *Service) Resend(ctx context.Context, c access.Caller, id string) (Delivery, error) {
	if err := c.Require(access.Manage); err != nil {
		return Delivery{}, err
	}
	d, err := s.Catalogue.Delivery(ctx, id)
	if err == nil && (!c.MayActFor(d.UserID) || d.Operator && !c.May(access.Administer)) {
		err = fault.New(fault.NotFound, "session.resend", "there is no delivery %s", id)
	}
	if err != nil {
		return Delivery{}, err
	}
	d, err = s.Catalogue.Resend(ctx, id, s.Now().UTC())
	s.told()
	return deliveryOf(d), err
}
