package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/save"
)

// The Chrome of a session with restart: on_crash is started again at most maxRestarts
// times within restartWindow. After one more crash the session ends.
const (
	maxRestarts   = 3
	restartWindow = 10 * time.Minute
)

// crash handles the end of Chrome's process. It first records the status. It then starts
// Chrome again if the create allows that and it has not crashed too often, else the
// session ends.
func (l *liveSession) crash() {
	e := ending{cause: causeCrash, reason: crashReason(l)}
	if l.request.Restart {
		now := l.svc.deps.Now()
		l.crashes = slices.DeleteFunc(l.crashes, func(at time.Time) bool { return now.Sub(at) >= restartWindow })
		restarts := fmt.Sprintf(", after %d restarts within %d minutes", maxRestarts, restartWindow/time.Minute)
		switch e.restart = len(l.crashes) < maxRestarts; {
		case e.restart:
			l.crashes = append(l.crashes, now)
		case e.reason.Code == profiles.ReasonCrashed:
			e.reason = profiles.ReasonCrashLoop.With(chromeCrashed + restarts)
		default:
			e.reason.Text += restarts
		}
	}
	l.crashUnreported = true
	l.setStatus(profiles.StatusError, e.reason) // until it is ready again, or finally
	l.begin(e)
}

// rescues reports whether the ending saves what a crash left, unless nothing is to be saved.
// A nil ending does not.
func (e *ending) rescues() bool { return e != nil && e.cause == causeCrash && !e.restart }

// useError returns the error for calls that used the browser when the ending took it.
func (e ending) useError() error {
	const op = "session.use"
	switch {
	case e.cause == causeMove:
		return ErrMoving
	case e.restart:
		return fault.New(fault.BrowserFailed, op, "Chrome crashed during the call and is being started again; try again")
	case e.cause == causeCrash:
		return fault.New(fault.SessionEnding, op, "Chrome crashed during the call, so the session ends")
	default:
		return save.SessionEndedError(op)
	}
}

// awaitRestart waits while the session's Chrome is started again, after a crash or by a
// resume. Without it, a caller that retries at once would get session_ending.
func (l *liveSession) awaitRestart(ctx context.Context) {
	l.awaitReopening(ctx)
	l.awaitEnding(ctx, func(e *ending) bool { return e.restart })
}

// awaitCrash waits until a crash is handled, by a restart or by saving what is left, so
// that a resume of the session, or a create from it, right after a crash succeeds.
func (l *liveSession) awaitCrash(ctx context.Context) {
	l.awaitEnding(ctx, func(e *ending) bool { return e.cause == causeCrash })
}

// awaitEnding waits for the end of a matching ending that is under way.
func (l *liveSession) awaitEnding(ctx context.Context, of func(*ending) bool) {
	result := make(chan save.EndResult, 1)
	if l.ask(ctx, func() error {
		if l.ending == nil || !of(l.ending) {
			result <- save.EndResult{}
			return nil
		}
		l.ending.waiters = append(l.ending.waiters, result)
		return nil
	}) != nil {
		return // the caller's next request returns the error
	}
	select {
	case <-result:
	case <-ctx.Done():
	}
}
