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

// A session with restart: on_crash has its Chrome started again this often within
// this long; one that crashes once more ends.
const (
	maxRestarts   = 3
	restartWindow = 10 * time.Minute
)

// crash takes in that Chrome is gone, and says so before all else: it is started again where the create
// wants that and it does not do so all the time, else the session ends.
func (l *live) crash() {
	e := ending{cause: causeCrash, reason: profiles.ReasonCrashed.With(chromeCrashed)}
	if l.request.Restart {
		now := l.svc.deps.Now()
		l.crashes = slices.DeleteFunc(l.crashes, func(at time.Time) bool { return now.Sub(at) >= restartWindow })
		if e.restart = len(l.crashes) < maxRestarts; e.restart {
			l.crashes = append(l.crashes, now)
		} else {
			e.reason = profiles.ReasonCrashLoop.With(fmt.Sprintf("Chrome crashed, after %d restarts within %d minutes", maxRestarts, restartWindow/time.Minute))
		}
	}
	l.untold = true
	l.setStatus(profiles.StatusError, e.reason) // until it is ready again, or for good
	l.begin(e)
}

// whyTaken is the error of who used the browser when an ending took it.
func (e ending) whyTaken() error {
	const op = "session.use"
	switch {
	case e.restart:
		return fault.New(fault.BrowserFailed, op, "Chrome crashed meanwhile, and is started again")
	case e.cause == causeCrash:
		return fault.New(fault.SessionEnding, op, "Chrome crashed meanwhile")
	default:
		return save.EndedMeanwhile(op)
	}
}

// awaitRestart waits while the session's Chrome is started again, after a crash or by
// a resume, so that who comes back at once is not told that the session ends.
func (l *live) awaitRestart(ctx context.Context) {
	l.awaitReopening(ctx)
	l.awaitCrashRestart(ctx)
}

// awaitCrashRestart waits while it is started again after a crash.
func (l *live) awaitCrashRestart(ctx context.Context) {
	l.awaitEnding(ctx, func(e *ending) bool { return e.restart })
}

// awaitCrash waits until a crash is dealt with, by a restart or by saving what is
// left: who resumes the session at once is to have it.
func (l *live) awaitCrash(ctx context.Context) {
	l.awaitEnding(ctx, func(e *ending) bool { return e.cause == causeCrash })
}

// awaitEnding waits for the end of an ending of a kind that is under way.
func (l *live) awaitEnding(ctx context.Context, of func(*ending) bool) {
	result := make(chan save.Ended, 1)
	if l.ask(ctx, func() error {
		if l.ending == nil || !of(l.ending) {
			result <- save.Ended{}
			return nil
		}
		l.ending.waiters = append(l.ending.waiters, result)
		return nil
	}) != nil {
		return // who asks next hears why
	}
	select {
	case <-result:
	case <-ctx.Done():
	}
}
