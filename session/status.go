package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/queue"
	"github.com/stasisd/stasis/session/save"
)

// usable returns an error if the browser cannot be used.
func (l *liveSession) usable() error {
	switch {
	case l.ending != nil && l.ending.cause == causeMove:
		return ErrMoving
	case l.ending != nil && l.ending.cause == causeCrash:
		return fault.New(fault.SessionEnding, "session.use", "session %s has failed (%s), and its data is being saved; try again later", l.id, l.rec.Reason.Text)
	case l.ending != nil:
		return fault.New(fault.SessionEnding, "session.use", "session %s is being ended", l.id)
	case l.svc.deps.Node.Check() != nil:
		return l.svc.deps.Node.Check()
	case l.chrome == nil:
		return fault.New(fault.SessionNotRunning, "session.use", "session %s has failed: %s", l.id, l.rec.Reason.Text)
	}
	return nil
}

// setStatus changes the session's status, first in memory and then in the record. It
// notifies webhooks of the status, and of a crash that they were not notified of.
func (l *liveSession) setStatus(status profiles.Status, reason profiles.Reason) {
	if l.rec.Status == status && l.rec.Reason == reason {
		return
	}
	l.rec.Status, l.rec.Reason = status, reason
	crash := l.crashUnreported // a status from before the crash does not report it
	l.recordQueue.Add(queue.Task{
		Begin: func() (func(context.Context) error, error) {
			notify := []string{events.HookStatus}
			if crash = crash && l.crashUnreported; crash {
				notify = append(notify, events.HookCrashed)
			}
			return func(ctx context.Context) error { return l.svc.records.SetStatus(ctx, l.id, status, reason, notify) }, nil
		},
		End: func(err error) {
			switch {
			case err != nil:
				l.svc.deps.Log.Error("cannot record a session's status", "session", l.id, "error", err)
			case crash:
				l.crashUnreported = false
			}
		},
	})
}

// Rights returns what access checks need of the session.
func (l *liveSession) Rights() *access.LiveSession { return l.rights }

// Info describes the session as it is now.
func (l *liveSession) Info(ctx context.Context) (answer.Info, error) {
	var i answer.Info
	err := l.ask(ctx, func() error {
		i = answer.Info{Session: l.rec, BrowserRestarted: l.restarted, HasAgent: l.hasAgent(),
			Restarting: l.reopening != nil || l.ending != nil && l.ending.restart, Rescuing: l.ending.rescues() && l.job(*l.ending).Mode != save.None}
		if l.usable() == nil {
			i.Usage = l.memory.usage(l.chrome, l.clients, l.viewers.count())
		}
		if l.report != nil {
			report := *l.report
			i.Restored = &report
		}
		if l.auto != nil {
			auto := *l.auto
			i.AutoSaved = &auto
		}
		return nil
	})
	return i, err
}
