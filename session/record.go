package session

import (
	"context"
	"slices"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/pictures"
	"github.com/stasisd/stasis/session/save"
)

// These are what a create may request to be recorded in addition.
const (
	RecordScreenshot = "screenshot" // a screenshot after each navigation
	RecordConsole    = "console"    // everything that pages log, not only errors
)

// Recordable are the allowed values of a create's record.
var Recordable = []string{RecordScreenshot, RecordConsole}

// These say why a run ended that no client ended, for people.
const (
	chromeCrashed = "Chrome crashed"
	afterSave     = "a save failed; Chrome was reopened"
	notReopened   = "a save failed and Chrome could not be reopened"
)

// beginRun begins a run with the session's Chrome.
func (l *liveSession) beginRun() {
	l.runs.Begin(l.chrome, l.report, slices.Contains(l.request.Record, RecordConsole))
}

// recordEnd records an ending's outcome. over reports that the session no longer has its
// Chrome and that the run ends.
func (l *liveSession) recordEnd(why cause, e save.EndResult) (status profiles.RunStatus, reason string, over bool) {
	if s := e.Answer.Snapshot; s != nil && e.SessionEnded {
		l.runs.RecordSaved(*s, e.Answer.Default)
	}
	if e.Err != nil {
		l.runs.RecordSaveFailed(e.Err)
	}
	l.audit.end(why, e)
	status, reason = why.run()
	switch {
	case e.SessionEnded:
	case e.Reopened != nil && why == causeCrash:
	case e.Chrome == nil && why != causeCrash:
		status, reason = profiles.RunFailed, notReopened
	case e.Reopened != nil:
		status, reason = profiles.RunFailed, afterSave
	case e.Chrome != nil:
		return "", "", false // the run continues
	}
	return status, reason, l.chrome != nil // without a Chrome the run has already ended
}

// run returns how a run ends for a cause.
func (c cause) run() (profiles.RunStatus, string) {
	switch c {
	case causeIdle:
		return profiles.RunCancelled, "idle_timeout"
	case causeLifetime:
		return profiles.RunCancelled, "max_lifetime"
	case causeShutdown:
		return profiles.RunCancelled, "shutdown"
	case causeMove:
		return profiles.RunCancelled, string(profiles.ReasonMoved)
	case causeCrash:
		return profiles.RunFailed, chromeCrashed
	case causeLimit:
		return profiles.RunFailed, string(profiles.ReasonDiskLimit)
	default:
		return profiles.RunCompleted, profiles.CauseRequested
	}
}

// pictures records screenshots of the session until it ends.
func (l *liveSession) pictures() {
	pictures.Record(l.ctx, pictures.Session{ID: l.id, Navigated: l.runs.Navigated(), Done: l.done, View: l.view}, l.svc.deps.Log)
}

// view returns the browser for a screenshot; none while the session is paused.
func (l *liveSession) view(ctx context.Context) (view pictures.View, err error) {
	err = l.ask(ctx, func() error {
		if err := l.usable(); err != nil || l.paused {
			return err
		}
		view = pictures.View{Browser: l.chrome, Writer: l.runs.Writer(), Context: l.useCtx}
		return nil
	})
	return view, err
}
