package session

import (
	"cmp"
	"context"
	"reflect"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// cause is why a session ends.
type cause int

const (
	causeRequested cause = iota
	causeIdle
	causeLifetime
	causeShutdown
	causeCrash
	causeLimit
	causeMove // another node continues the session
)

// ending is an end that is under way. Requests with the same parameters share it.
type ending struct {
	cause   cause
	request request.End     // for causeRequested
	restart bool            // for causeCrash: Chrome is started again instead
	reason  profiles.Reason // for causeCrash and causeLimit
	waiters []chan<- save.EndResult
	waits   int // what must finish before the ending is carried out
}

// End ends a session. For a session that does not exist or has ended, it answers deleted:
// false, with what was saved of the session. A save of a session that does not exist is
// session_not_found, and of an ended session of which nothing was saved no_snapshot.
func (s *Service) End(ctx context.Context, c access.Caller, id string, r request.End) (save.EndAnswer, error) {
	if err := c.RequireForAny(access.Drive); err != nil {
		return save.EndAnswer{}, err
	}
	if r.SaveAsDefault && r.Mode == save.None {
		return save.EndAnswer{}, fault.New(fault.InvalidField, "session.end", "save_as_default: needs save_snapshot_mode filesystem or memory")
	}
	if !r.Origins.All() && r.Mode != save.Filesystem {
		return save.EndAnswer{}, fault.New(fault.InvalidField, "session.end", "origins_include, origins_exclude: need save_snapshot_mode filesystem, because a memory snapshot has all origins")
	}
	l, err := s.running(ctx, c, id, access.Drive)
	switch {
	case fault.Is(err, fault.SessionNotRunning), fault.Is(err, fault.SessionNotFound), s.rescues.Has(id):
		return s.endedBefore(ctx, c, id, r)
	case err != nil:
		return save.EndAnswer{}, err
	}
	e, err := l.end(ctx, ending{cause: causeRequested, request: r})
	if fault.Is(err, fault.SessionNotRunning) {
		return s.endedBefore(ctx, c, id, r)
	}
	if err != nil {
		return save.EndAnswer{}, err
	}
	return e.Answer, e.Err
}

// EndAll ends the live sessions of a user, or of all users.
func (s *Service) EndAll(ctx context.Context, c access.Caller, r request.EndAll) (save.EndAnswer, error) {
	if err := c.Require(access.Drive); err != nil {
		return save.EndAnswer{}, err
	}
	userID := r.UserID
	if userID == "" {
		userID = c.UserID
	}
	if r.All {
		if err := c.Require(access.Administer); err != nil {
			return save.EndAnswer{}, err
		}
	} else if !c.MayActFor(userID) {
		return save.EndAnswer{}, fault.New(fault.Forbidden, "session.end_all", "user_id: the key may not act for this user")
	}
	var ids []string
	for _, l := range s.sessions.All() {
		if r.All || l.rights.UserID == userID {
			ids = append(ids, l.id)
		}
	}
	return s.endEach(ctx, c, ids, r.End)
}

// end begins an ending, or joins one with the same parameters, and waits for it. The
// ending continues when ctx ends: a save must not stop because the client disconnected. A
// requested end waits while a crash is handled. If the crash has ended the session, the error
// is session_not_running.
func (l *liveSession) end(ctx context.Context, e ending) (save.EndResult, error) {
	for {
		result := make(chan save.EndResult, 1)
		crashed := false
		if err := l.ask(ctx, func() error {
			switch {
			case l.ending == nil:
				if err := l.mayEnd(e); err != nil {
					return err
				}
				l.begin(e)
			case l.ending.cause == causeCrash && e.cause == causeRequested:
				crashed = true
			case l.ending.cause == causeMove && e.cause == causeRequested:
				return ErrMoving
			case l.ending.cause != e.cause || !reflect.DeepEqual(l.ending.request, e.request):
				return fault.New(fault.SessionEnding, "session.end", "session %s is already being ended with other parameters", l.id)
			}
			l.ending.waiters = append(l.ending.waiters, result)
			return nil
		}); err != nil {
			return save.EndResult{}, err
		}
		select {
		case r := <-result:
			if !crashed {
				return r, nil
			}
		case <-ctx.Done():
			return save.EndResult{}, fault.Wrap(ctx.Err(), fault.Timeout, "session.end", "the session is still being ended; GET the session for its outcome")
		}
	}
}

// shutdown ends the session because the daemon stops. It first waits for an end that is
// under way. If the session cannot be saved, it returns the error. The session then stays
// until the service's context ends, and the next start rescues its user data directory.
func (l *liveSession) shutdown(ctx context.Context) error {
	for {
		e, err := l.end(ctx, ending{cause: causeShutdown})
		if !fault.Is(err, fault.SessionEnding) || !l.awaitNoEnding(ctx) {
			return e.Err
		}
	}
}

// awaitNoEnding waits until no ending is under way. It returns false if ctx ends first.
func (l *liveSession) awaitNoEnding(ctx context.Context) bool {
	result := make(chan save.EndResult, 1)
	err := l.ask(ctx, func() error {
		if l.ending == nil {
			result <- save.EndResult{}
			return nil
		}
		l.ending.waiters = append(l.ending.waiters, result)
		return nil
	})
	if err != nil {
		return fault.Is(err, fault.SessionNotRunning)
	}
	select {
	case <-result:
		return true
	case <-ctx.Done():
		return false
	}
}

// mayEnd returns an error for a save that the session does not allow.
func (l *liveSession) mayEnd(e ending) error {
	if err := l.svc.deps.Node.Check(); err != nil {
		return err
	}
	if e.cause == causeRequested && l.request.ReadOnly && e.request.Mode != save.None {
		return fault.New(fault.Unsupported, "session.end", "save_snapshot_mode: the session is read_only; only none is allowed")
	}
	return nil
}

// begin starts an ending. It is carried out when everything under way has finished:
// freezes and thaws, writes to the catalogue, a checkpoint and a reopening. A checkpoint
// releases Chrome, or continues without it if it has all its data. A reopening is not cut
// off at once, because a site may have given the new Chrome state that is stored nowhere
// else.
func (l *liveSession) begin(e ending) {
	l.ending = &e
	l.moving.Store(e.cause == causeMove)
	l.cancelUse(e.useError())
	l.ending.waits = 1 // for the queues
	if l.checkpoint != nil {
		l.ending.waits++
	}
	if l.reopening != nil {
		l.ending.waits++
		l.reopening.giveWay(l.job(e).Mode, cmp.Or(l.svc.cfg.Waits.Reopening, reopenPatience))
	}
	l.freezeQueue.After(func() { l.recordQueue.After(l.carryOut) })
}

// carryOut runs the ending on its own goroutine, when everything that it waits for has
// finished.
func (l *liveSession) carryOut() {
	if l.ending.waits--; l.ending.waits > 0 {
		return
	}
	job := l.job(*l.ending)
	l.svc.work.Go(func() { l.finished <- l.svc.saver.End(l.ctx, job) })
}

// finish handles an ending's outcome. If the session loses its Chrome, the run ends
// first.
func (l *liveSession) finish(e save.EndResult) {
	if status, why, over := l.recordEnd(l.ending.cause, e); over {
		l.runs.End(l.recordQueue, func() int { return l.clients }, status, why)
	}
	if e.SessionEnded {
		last := l.replica
		l.replica = nil
		l.recordQueue.Do(func(context.Context) error { l.svc.saver.DropReplica(last); return nil }, nil)
	}
	l.recordQueue.After(func() { l.conclude(e) })
}

// conclude ends or continues the session after its run has ended.
func (l *liveSession) conclude(e save.EndResult) {
	if e.SessionEnded {
		l.ended = true
		l.svc.forget(l) // before the waiters are notified: from here on its slot is free
		l.ending.notifyWaiters(e)
		return
	}
	l.chrome, l.doc, l.thawed = e.Chrome, e.Document, false
	if e.Reopened != nil {
		l.continueWith(*e.Reopened)
	}
	l.recordQueue.After(func() { l.keepLive(e) })
}

// keepLive makes the session usable again after an ending that did not end it. It
// notifies the waiters when that is recorded.
func (l *liveSession) keepLive(e save.EndResult) {
	was := l.ending
	l.ending = nil
	l.moving.Store(false)
	switch {
	case e.Chrome == nil && was.cause == causeCrash:
		l.setStatus(profiles.StatusError, profiles.ReasonCrashKept.With("Chrome crashed and its data could not be saved; the data is kept, resume the session to try again"))
	case e.Chrome == nil:
		l.setStatus(profiles.StatusError, profiles.ReasonSaveFailed.With("a save failed and Chrome could not be reopened; the data is kept"))
	}
	l.useCtx, l.cancelUse = context.WithCancelCause(l.ctx)
	if e.Reopened != nil {
		l.beginVerifying(e.Reopened.Document)
	}
	l.freezeIfUnused()
	l.touch()
	// The lifetime timer may have fired during the ending and been ignored. The lifetime
	// has still ended, so the end is tried again, as often as for an idle session.
	left := l.rec.ExpiresAt.Sub(l.svc.deps.Now())
	if left <= 0 {
		left = l.request.Idle
	}
	l.lifetime.Reset(left)
	l.freezeQueue.After(func() { l.recordQueue.After(func() { was.notifyWaiters(e) }) })
}

// notifyWaiters sends the outcome to everything that waits for the ending.
func (e *ending) notifyWaiters(outcome save.EndResult) {
	for _, w := range e.waiters {
		w <- outcome
	}
}
