package session

import (
	"context"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Why Chrome is started again.
const (
	failedSave = "a save that failed"
	aCrash     = "a crash"
)

// startAgain starts another Chrome on a session's own datadir, with what was
// read of it last, and reports what it brought back.
func (s *Service) startAgain(ctx context.Context, rec profiles.Session, dir *browser.Dir, doc state.Document, o browser.Options, why string) (upright, error) {
	began := s.Now()
	notes, err := s.notesOf(ctx, rec)
	if err != nil {
		return upright{}, err
	}
	doc.Missed = append(slices.Clone(doc.Missed), inMemoryOnly(doc, o.Extensions)...)
	chrome, lines, err := s.Browsers.Restored(ctx, dir, doc, o)
	if err != nil {
		return upright{}, err
	}
	report := &RestoreReport{
		Source: Source{Type: SourceSession, ID: rec.ID}, RequestedMode: string(snapshot.Filesystem), Mode: string(snapshot.Filesystem),
		Path: PathCold, Datadir: doc.Datadir, Chrome: Versions{Saved: doc.Chrome.Version, Running: chrome.Version()},
		Components: lines, Verification: VerificationPending, Differences: []state.Difference{},
		Warnings:   append([]string{"Chrome was reopened on the session's own data after " + why}, missed(doc)...),
		DurationMS: s.Now().Sub(began).Milliseconds(), Notes: notes,
	}
	if w := unreadCrash(doc); w != "" {
		report.Warnings = append(report.Warnings, w)
	}
	report.bound()
	return upright{chrome: chrome, report: report, doc: doc}, nil
}

// unreadCrash is the warning of what came from a Chrome that died before anybody
// read it, "" of all else.
func unreadCrash(doc state.Document) string {
	switch {
	case doc.Datadir != state.DatadirCrash:
		return ""
	case doc.Complete && doc.ReadUntil.IsZero():
		return ""
	case doc.Complete:
		return "Chrome died: of what it had not written there is what was read last, at " + doc.CapturedAt.Format(time.RFC3339) +
			"; what pages changed after that and Chrome had not written is missing"
	}
	if doc.Chrome.Engine == browser.EngineShell {
		return "the shell engine died before this was saved: its session cookies and tabs are lost, and cookies of its last " +
			"30 seconds and storage of its last seconds may be missing"
	}
	return "Chrome died before this was saved: cookies of its last 30 seconds, " +
		"storage of its last seconds, and the newest tabs may be missing"
}

// reopen tries again to start Chrome on the datadir that a failed save kept.
func (l *live) reopen() error {
	again, err := l.svc.startAgain(l.svc.ctx, l.rec, l.dir, l.doc, l.request.again(), failedSave)
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, "session.resume", "Chrome could not be reopened; the data is still kept")
	}
	l.goOn(again)
	l.touch()
	return nil
}

// goOn lets the session go on in a Chrome that was reopened: the session's
// report is from now on that of the reopening, which is verified as any other.
func (l *live) goOn(again upright) {
	l.chrome, l.restarted, l.paused = again.chrome, true, false
	l.setStatus(profiles.StatusReady, profiles.Reason{})
	if err := l.setReport(again.report); err != nil {
		l.svc.Log.Error("a session's report could not be recorded", "session", l.id, "error", err)
	}
	l.beginRun()
	l.svc.work.Go(func() { l.verify(again.doc) })
}
