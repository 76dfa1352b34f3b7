package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/queue"
)

// Pause marks a session as paused. Its Chrome is frozen while no client is connected, and
// the idle limit does not apply.
func (s *Service) Pause(ctx context.Context, c access.Caller, id string) (answer.Acknowledgement, error) {
	a := answer.Acknowledgement{Success: true, Status: "paused", Message: "the session is paused"}
	l, err := s.running(ctx, c, id, access.Drive)
	if err != nil {
		return a, err
	}
	l.awaitRestart(ctx)
	already := false
	err = l.askAndWait(ctx, func(reply func(error)) {
		if err := l.usable(); err != nil {
			reply(err)
			return
		}
		if already = l.paused; already {
			l.whenPaused(reply)
			return
		}
		l.paused = true
		l.freeze(func(err error) {
			if err == nil {
				err = l.usable() // an ending may have begun
			}
			if err != nil {
				l.paused = false
				reply(err)
				return
			}
			l.setStatus(profiles.StatusPaused, profiles.Reason{})
			l.runs.Record(events.Paused, nil)
			l.recordQueue.After(func() { reply(nil) })
		})
	})
	if err == nil && already {
		a.Status, a.Message = "already_paused", "the session is already paused"
	}
	s.deps.Journal.Flush(ctx, id)
	return a, err
}

// shouldFreeze reports whether Chrome is to be frozen: the session is paused and not in
// use.
func (l *liveSession) shouldFreeze() bool {
	return l.paused && !l.busy() && l.checkpoint == nil && l.usable() == nil
}

// freezeIfUnused freezes Chrome if the session is paused and not in use.
func (l *liveSession) freezeIfUnused() {
	if !l.shouldFreeze() {
		return
	}
	l.freeze(func(err error) {
		if err != nil {
			l.svc.deps.Log.Error("cannot freeze a paused session again; its Chrome keeps running", "session", l.id, "error", err)
		}
	})
}

// freeze freezes Chrome, if the session is still to be frozen when the task's turn comes.
func (l *liveSession) freeze(end func(error)) {
	l.freezeQueue.Add(queue.Task{
		Begin: func() (func(context.Context) error, error) {
			if !l.shouldFreeze() {
				return nil, nil
			}
			l.thawed = false
			return l.chrome.Freeze, nil
		},
		End: end,
	})
}

// thaw thaws Chrome so that clients can use it. It fails for a session that is being
// ended.
func (l *liveSession) thaw(end func(error)) {
	l.freezeQueue.Add(queue.Task{
		Begin: func() (func(context.Context) error, error) {
			if err := l.usable(); err != nil || l.thawed {
				return nil, err
			}
			return l.chrome.Thaw, nil
		},
		End: func(err error) {
			if err == nil {
				l.thawed = true
			}
			end(err)
		},
	})
}

// whenPaused calls end when a pause that is under way has ended, with an error if the
// pause failed.
func (l *liveSession) whenPaused(end func(error)) {
	l.freezeQueue.After(func() {
		l.recordQueue.After(func() {
			if l.paused {
				end(nil)
				return
			}
			end(fault.New(fault.BrowserFailed, "session.pause", "the session could not be paused; try again"))
		})
	})
}
