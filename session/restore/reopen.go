package restore

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// ReopenRequest describes the start of another Chrome on a session's own run directory.
type ReopenRequest struct {
	SessionID string
	Dir       *browser.Dir
	Document  state.Document // the last reading of the session
	Options   browser.Options
	Notes     *Notes // restored with the session; nil: none
	Why       string // what ended the previous Chrome
}

// Reopen starts another Chrome on a session's own data and reports what it restored.
func (r *Restorer) Reopen(ctx context.Context, o ReopenRequest) (StartResult, error) {
	began := r.cfg.Now()
	doc := o.Document
	if err := o.Dir.Downloads().Discard(); err != nil { // the new Chrome does not continue them
		r.log.Warn("what the downloads of a Chrome that has ended left could not be removed", "session", o.SessionID, "error", err)
	}
	chrome, lines, err := r.browsers.Restored(ctx, o.Dir, doc, o.Options)
	if err != nil {
		return StartResult{}, err
	}
	report := &Report{
		Source: Source{Type: SourceSession, ID: o.SessionID}, RequestedMode: string(snapshot.Filesystem), Mode: string(snapshot.Filesystem),
		Path: PathCold, Datadir: doc.Datadir, Chrome: Versions{Saved: doc.Chrome.Version, Running: chrome.Version()},
		Components: lines, Verification: VerificationPending, Differences: []state.Difference{},
		Warnings:   append([]string{"Chrome was reopened on the session's own data after " + o.Why}, state.CaptureWarnings(doc)...),
		DurationMS: r.cfg.Now().Sub(began).Milliseconds(), Notes: o.Notes,
	}
	if w := unreadCrash(doc); w != "" {
		report.Warnings = append(report.Warnings, w)
	}
	report.bound()
	return StartResult{Chrome: chrome, Report: report, Document: doc}, nil
}
