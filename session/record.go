package session

import (
	"context"
	"slices"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/pictures"
	"github.com/stasisd/stasis/session/save"
)

// What a create may ask to be recorded besides what always is.
const (
	RecordScreenshot = "screenshot" // a picture after each navigation
	RecordConsole    = "console"    // all that pages log, not only errors
)

// Recordable are the values of a create's record.
var Recordable = []string{RecordScreenshot, RecordConsole}

// Why runs end that nobody ended, for people.
const (
	chromeCrashed = "Chrome crashed"
	afterSave     = "a save failed; Chrome was reopened"
	notReopened   = "a save failed and Chrome could not be reopened"
)

// beginRun begins a run with the session's Chrome, and tells how that came up.
func (l *live) beginRun() {
	l.writer, l.runOver = l.svc.Journal.Begin(l.id), false
	if r := l.report; r != nil {
		l.writer.Record(events.Restored, events.Fields{"snapshot_id": r.SnapshotID, "source": string(r.Source.Type), "source_id": r.Source.ID,
			"mode": r.Mode, "path": r.Path, "duration_ms": r.DurationMS, "warnings": len(r.Warnings)})
	} else {
		l.writer.Record(events.Started, events.Fields{"engine": l.chrome.Engine(), "chrome": l.chrome.Version()})
	}
	writer := l.writer
	l.deaf = l.chrome.Listen(func(h browser.Happening) {
		if h.Lost > 0 {
			writer.Lost(h.Kind, h.Lost)
			return
		}
		writer.Observe(h.Kind, h.Data)
		if h.Kind == browser.HappenedNavigation {
			select {
			case l.moved <- struct{}{}:
			default: // a picture is to be taken anyway
			}
		}
	}, slices.Contains(l.request.Record, RecordConsole))
}

// endRun ends the run, when all that was heard in it is told.
func (l *live) endRun(status profiles.RunStatus, cause string) {
	deaf, writer := l.deaf, l.writer
	l.records.Do(func(context.Context) error { deaf(); return nil }, func(error) {
		for gone := range l.clients { // they hear that it is over, and are not waited for
			writer.Record(events.Disconnected, events.Fields{"clients": l.clients - 1 - gone})
		}
		l.runOver = true
	})
	l.records.Do(func(ctx context.Context) error { writer.End(ctx, status, cause); return nil }, nil)
}

// tellEnd tells what an ending came to. over: its Chrome is no longer the session's,
// and the run ends, so.
func (l *live) tellEnd(why cause, e save.Ended) (status profiles.RunStatus, reason string, over bool) {
	if s := e.Answer.Snapshot; s != nil && e.Over {
		l.writer.Record(events.Saved, savedFields(*s, e.Answer.Default))
	}
	if e.Err != nil {
		l.writer.Record(events.SaveFailed, events.Fields{"code": string(fault.CodeOf(e.Err)), "message": fault.MessageOf(e.Err)})
	}
	status, reason = why.run()
	switch {
	case e.Over:
	case e.Reopened != nil && why == causeCrash:
	case e.Chrome == nil && why != causeCrash:
		status, reason = profiles.RunFailed, notReopened
	case e.Reopened != nil:
		status, reason = profiles.RunFailed, afterSave
	case e.Chrome != nil:
		return "", "", false // the run goes on
	}
	return status, reason, l.chrome != nil // else it has ended before
}

// tellCheckpoint tells what a checkpoint came to. Where nothing has changed
// nothing was saved.
func (l *live) tellCheckpoint(c save.Checkpointed) {
	switch {
	case c.Err != nil:
		l.writer.Record(events.SaveFailed, events.Fields{"code": string(fault.CodeOf(c.Err)), "message": fault.MessageOf(c.Err)})
	case !c.Answer.Unchanged:
		l.writer.Record(events.Saved, savedFields(c.Answer.Snapshot, c.Answer.Default))
	}
}

// savedFields are the data of an event that tells of a snapshot.
func savedFields(s library.SnapshotInfo, d *save.DefaultOutcome) events.Fields {
	return events.Fields{"snapshot_id": s.ID, "mode": s.Mode, "rescue": s.Rescue, "size_bytes": s.SizeBytes, "default_moved": d != nil && d.Moved}
}

// run is how a run ends for a cause.
func (c cause) run() (profiles.RunStatus, string) {
	switch c {
	case causeIdle:
		return profiles.RunCancelled, "idle_timeout"
	case causeLifetime:
		return profiles.RunCancelled, "max_lifetime"
	case causeShutdown:
		return profiles.RunCancelled, "shutdown"
	case causeCrash:
		return profiles.RunFailed, chromeCrashed
	default:
		return profiles.RunCompleted, profiles.CauseAsked
	}
}

// connected tells that a client came; what it gives tells on the session's
// goroutine that the client left, unless the run has ended meanwhile.
func (l *live) connected() (left func()) {
	writer := l.writer
	writer.Record(events.Connected, events.Fields{"clients": l.clients})
	return func() {
		if l.writer == writer && !l.runOver {
			writer.Record(events.Disconnected, events.Fields{"clients": l.clients})
		}
	}
}

// pictures records pictures of the session until it ends.
func (l *live) pictures() {
	pictures.Record(l.svc.ctx, pictures.Session{ID: l.id, Moved: l.moved, Done: l.done, Look: l.view}, l.svc.Log)
}

// view gives the browser for a picture, unless it is paused.
func (l *live) view(ctx context.Context) (view pictures.View, err error) {
	err = l.ask(ctx, func() error {
		if err := l.usable(); err != nil || l.paused {
			return err
		}
		view = pictures.View{Browser: l.chrome, Writer: l.writer, Lent: l.lent}
		return nil
	})
	return view, err
}
