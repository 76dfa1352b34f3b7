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

// A Chrome that a resume starts on what a failed save kept has so long to come up, and
// so long from when the session is being ended.
const (
	reopenDeadline = 2 * time.Minute
	reopenPatience = 10 * time.Second
)

// reopening is the start of a Chrome that is under way. Requests share it.
type reopening struct {
	cancel  context.CancelFunc
	timer   *time.Timer // nil: no ending waits for it
	waiters []func(error)
}

// reopened is what a reopening came to.
type reopened struct {
	started restore.Started
	err     error
}

// reopen tries again, beside the session's goroutine, to start Chrome on the profile
// that a failed save kept. It goes on when the one who asked has gone.
func (l *live) reopen(end func(error)) {
	ctx, cancel := context.WithTimeout(l.svc.ctx, reopenDeadline)
	l.reopening = &reopening{cancel: cancel, waiters: []func(error){end}}
	rec, dir, doc, options := l.rec, l.dir, l.doc, l.options()
	l.svc.work.Go(func() {
		up, err := l.svc.saver.Restart(ctx, rec, dir, doc, options, save.AfterFailedSave)
		l.reopened <- reopened{up, err}
	})
}

// giveWay bounds a reopening that an ending waits for. What a site gives the new
// Chrome, such as a token in place of the old one, is worth some time, but not where
// nothing is to be saved.
func (r *reopening) giveWay(mode save.Mode, patience time.Duration) {
	if mode == save.None {
		r.cancel()
		return
	}
	r.timer = time.AfterFunc(patience, r.cancel)
}

// finishReopening takes the outcome of a reopening. An end that has waited for it goes
// on from there.
func (l *live) finishReopening(r reopened) {
	l.reopening.cancel()
	if l.reopening.timer != nil {
		l.reopening.timer.Stop()
	}
	switch {
	case r.err == nil:
		l.goOn(r.started)
	case l.doc.Complete:
		l.doc.Datadir = state.DatadirCrash // the Chrome that did not come up may have had it open
	}
	l.records.After(func() {
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
			end(fault.Wrap(r.err, fault.BrowserFailed, "session.resume", "Chrome could not be reopened; the data is still kept"))
		}
	})
}

// awaitReopening waits for the end of a reopening that is under way.
func (l *live) awaitReopening(ctx context.Context) {
	// Whatever it came to, who asks next hears of it.
	_ = l.askAndWait(ctx, func(reply func(error)) {
		if l.reopening == nil {
			reply(nil)
			return
		}
		l.reopening.waiters = append(l.reopening.waiters, reply)
	})
}

// goOn lets the session go on in a Chrome that was reopened: the session's
// report is from now on that of the reopening.
func (l *live) goOn(again restore.Started) {
	l.chrome, l.awake, l.restarted, l.paused = again.Chrome, true, true, false
	l.setStatus(profiles.StatusReady, profiles.Reason{})
	l.setReport(again.Report)
	l.beginRun()
}
