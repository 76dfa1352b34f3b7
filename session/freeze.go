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

// Pause marks a session paused: its Chrome is frozen while no client is
// attached, and the idle limit stands still.
func (s *Service) Pause(ctx context.Context, c access.Caller, id string) (answer.Acknowledged, error) {
	a := answer.Acknowledged{Success: true, Status: "paused", Message: "the session is paused"}
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
				err = l.usable() // an ending has begun
			}
			if err != nil {
				l.paused = false
				reply(err)
				return
			}
			l.setStatus(profiles.StatusPaused, profiles.Reason{})
			l.runs.Record(events.Paused, nil)
			l.records.After(func() { reply(nil) })
		})
	})
	if err == nil && already {
		a.Status, a.Message = "already_paused", "the session is paused already"
	}
	s.Journal.Flush(ctx, id)
	return a, err
}

// still reports whether Chrome is to be frozen: that of a paused session that nobody
// looks at.
func (l *live) still() bool {
	return l.paused && !l.busy() && l.checkpoint == nil && l.usable() == nil
}

// settleFreeze freezes Chrome where that is to be.
func (l *live) settleFreeze() {
	if !l.still() {
		return
	}
	l.freeze(func(err error) {
		if err != nil {
			l.svc.Log.Error("a paused session could not be frozen again", "session", l.id, "error", err)
		}
	})
}

// freeze freezes Chrome, if that is still to be when its turn comes.
func (l *live) freeze(end func(error)) {
	l.power.Add(queue.Task{
		Begin: func() (func(context.Context) error, error) {
			if !l.still() {
				return nil, nil
			}
			l.awake = false
			return l.chrome.Freeze, nil
		},
		End: end,
	})
}

// thaw lets a frozen Chrome run, and clients come to it; it is not for a session
// that is being ended.
func (l *live) thaw(end func(error)) {
	l.power.Add(queue.Task{
		Begin: func() (func(context.Context) error, error) {
			if err := l.usable(); err != nil || l.awake {
				return nil, err
			}
			return l.chrome.Thaw, nil
		},
		End: func(err error) {
			if err == nil {
				l.awake = true
			}
			end(err)
		},
	})
}

// whenPaused calls end when a pause that is under way has ended, with an error if it
// failed.
func (l *live) whenPaused(end func(error)) {
	l.power.After(func() {
		l.records.After(func() {
			if l.paused {
				end(nil)
				return
			}
			end(fault.New(fault.BrowserFailed, "session.pause", "the session could not be paused; try again"))
		})
	})
}
