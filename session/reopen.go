package session

import (
	"context"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
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
