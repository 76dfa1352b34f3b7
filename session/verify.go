package session

import (
	"context"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// verify reads the restored state back once the tabs exist, or the thawed Chrome runs,
// and records the differences in the restore report.
func (l *liveSession) verify(doc state.Document) {
	var (
		chrome browsers.Chrome
		first  *restore.Report
		ctx    context.Context // ends when the session is being ended
	)
	if l.ask(l.ctx, func() error {
		chrome, first, ctx = l.chrome, l.report, l.useCtx
		return l.usable()
	}) != nil {
		return
	}
	var found state.Verification
	var err error
	if first.Path == restore.PathParked {
		found, err = chrome.VerifyThawed(ctx, doc)
	} else {
		found, err = chrome.Verify(ctx, doc, first.Components)
	}
	if ctx.Err() != nil {
		return // the session ended first; the report stays pending
	}
	if err != nil {
		l.svc.deps.Log.Warn("cannot verify a restore; its report says so", "session", l.id, "error", err)
	}
	// A session that has ended meanwhile keeps its report unchanged.
	_ = l.ask(l.ctx, func() error {
		if l.report != first {
			return nil // Chrome was reopened, which has its own report
		}
		report := *first // a copy, because other goroutines read the old one
		if err != nil {
			report.MarkUnverified()
		} else {
			report.AddVerification(found)
		}
		l.setReport(&report)
		return nil
	})
}

// beginVerifying verifies what was restored, on its own goroutine.
func (l *liveSession) beginVerifying(doc state.Document) {
	l.svc.work.Go(func() { l.verify(doc) })
}

// setReport sets the session's restore report, first in memory and then in the record.
func (l *liveSession) setReport(r *restore.Report) {
	restored := profiles.JSON(r)
	l.report, l.rec.Restored = r, restored
	l.recordQueue.Do(func(ctx context.Context) error { return l.svc.records.SetReport(ctx, l.id, restored) }, func(err error) {
		if err != nil {
			l.svc.deps.Log.Error("cannot record a session's restore report", "session", l.id, "error", err)
		}
	})
}
