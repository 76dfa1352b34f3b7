package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// A session with restart: on_crash has its Chrome started again this often within
// this long; one that crashes once more ends.
const (
	maxRestarts   = 3
	restartWindow = 10 * time.Minute
)

// crash takes in that Chrome is gone: it is started again where the create
// wants that and it does not do so all the time, else the session ends.
func (l *live) crash() {
	e := ending{cause: causeCrash}
	if l.request.Restart {
		now := l.svc.Now()
		l.crashes = slices.DeleteFunc(l.crashes, func(at time.Time) bool { return now.Sub(at) >= restartWindow })
		if e.restart = len(l.crashes) < maxRestarts; e.restart {
			l.crashes = append(l.crashes, now)
		} else {
			e.reason = fmt.Sprintf("Chrome crashed, after %d restarts within %d minutes", maxRestarts, restartWindow/time.Minute)
		}
	}
	l.begin(e)
}

// tellCrash tells who asks of a crash that ends the session, while what is left is
// being saved: the record says so when that is done. Who asks for one that goes on waits.
func (l *live) tellCrash(i *Info) {
	if l.ending != nil && l.ending.cause == causeCrash && !l.ending.restart {
		i.Status, i.Reason = profiles.StatusError, cmp.Or(l.ending.reason, "Chrome crashed")
	}
}

// restart starts a Chrome on what one that crashed has left, which is newer than
// any snapshot. Where none comes up that is saved, and the session ends.
func (s *Service) restart(ctx context.Context, j job) ended {
	j.restart = false
	if err := j.chrome.Kill(ctx); err != nil {
		return s.end(j)
	}
	doc, from := s.left(ctx, j)
	again, err := s.startAgain(ctx, j.rec, j.dir, doc, j.again, aCrash)
	if err != nil {
		s.Log.Error("a Chrome that crashed could not be started again", "session", j.rec.ID, "error", err)
		j.doc = doc // the Chrome that did not come up may have touched the profile
		j.label = readBy(from)
		j.reason = "Chrome crashed, and could not be started again: " + fault.MessageOf(err)
		return s.end(j)
	}
	s.tellCrash(ctx, j.rec.ID)
	return ended{chrome: again.chrome, reopened: &again}
}

// awaitRestart waits while the session's Chrome is started again after a crash, so
// that who comes back at once is not told that the session ends.
func (l *live) awaitRestart(ctx context.Context) {
	result := make(chan ended, 1)
	if l.ask(ctx, func() error {
		if l.ending == nil || !l.ending.restart {
			result <- ended{}
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
