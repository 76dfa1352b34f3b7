package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// reopenDeadline bounds how long a Chrome may take to start on the data of a failed save.
// reopenPatience bounds that time after the session has started to end.
const (
	reopenDeadline = 2 * time.Minute
	reopenPatience = 10 * time.Second
)

// reopening is the start of a Chrome that is under way. Requests share it.
type reopening struct {
	cancel  context.CancelFunc
	timer   *time.Timer // nil: no ending waits for the reopening
	waiters []func(error)
}

// reopened is the outcome of a reopening.
type reopened struct {
	started restore.StartResult
	err     error
}

// reopen tries again to start Chrome on the profile that a failed save kept, on its own
// goroutine. It continues when the caller has gone.
func (l *liveSession) reopen(end func(error)) {
	ctx, cancel := context.WithTimeout(l.ctx, reopenDeadline)
	l.reopening = &reopening{cancel: cancel, waiters: []func(error){end}}
	rec, dir, doc, options := l.rec, l.dir, l.doc, l.options()
	l.svc.work.Go(func() {
		up, err := l.svc.saver.Restart(ctx, rec, dir, doc, options, save.AfterFailedSave)
		l.reopened <- reopened{up, err}
	})
}

// giveWay bounds a reopening that an ending waits for. A site may give the new Chrome
// state, such as a token that replaces the old one. That is worth some time, but not if
// nothing is to be saved.
func (r *reopening) giveWay(mode save.Mode, patience time.Duration) {
	if mode == save.None {
		r.cancel()
		return
	}
	r.timer = time.AfterFunc(patience, r.cancel)
}

// finishReopening handles the outcome of a reopening. An ending that has waited for it
// continues.
func (l *liveSession) finishReopening(r reopened) {
	l.reopening.cancel()
	if l.reopening.timer != nil {
		l.reopening.timer.Stop()
	}
	switch {
	case r.err == nil:
		l.continueWith(r.started)
	case l.doc.Complete:
		l.doc.Datadir = state.DatadirCrash // the Chrome that did not start may have had it open
	}
	l.recordQueue.After(func() {
		was := l.reopening
		l.reopening = nil
		l.touch()
		switch {
		case l.ending != nil:
			l.carryOut()
		case r.err == nil:
			l.beginVerifying(r.started.Document)
		}
		for _, end := range was.waiters {
			end(fault.Wrap(r.err, fault.BrowserFailed, "session.resume", "Chrome could not be reopened; the data is still kept, try again later"))
		}
	})
}

// awaitReopening waits for the end of a reopening that is under way.
func (l *liveSession) awaitReopening(ctx context.Context) {
	// The caller's next request returns the outcome.
	_ = l.askAndWait(ctx, func(reply func(error)) {
		if l.reopening == nil {
			reply(nil)
			return
		}
		l.reopening.waiters = append(l.reopening.waiters, reply)
	})
}

// continueWith continues the session in a reopened Chrome. From now on the session's
// report is that of the reopening.
func (l *liveSession) continueWith(again restore.StartResult) {
	l.chrome, l.thawed, l.restarted, l.paused = again.Chrome, true, true, false
	l.setStatus(profiles.StatusReady, profiles.Reason{})
	l.setReport(again.Report)
	l.beginRun()
}
