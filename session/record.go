package session

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/pictures"
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
	killed        = "the daemon was killed" // it left the run open
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
func (l *live) tellEnd(why cause, e ended) (status profiles.RunStatus, reason string, over bool) {
	if s := e.answer.Snapshot; s != nil && e.over {
		l.writer.Record(events.Saved, savedFields(*s, e.answer.Default))
	}
	if e.err != nil {
		l.writer.Record(events.SaveFailed, events.Fields{"code": string(fault.CodeOf(e.err)), "message": fault.MessageOf(e.err)})
	}
	status, reason = why.run()
	switch {
	case e.over:
	case e.reopened != nil && why == causeCrash:
	case e.chrome == nil && why != causeCrash:
		status, reason = profiles.RunFailed, notReopened
	case e.reopened != nil:
		status, reason = profiles.RunFailed, afterSave
	case e.chrome != nil:
		return "", "", false // the run goes on
	}
	return status, reason, l.chrome != nil // else it has ended before
}

// tellCheckpoint tells what a checkpoint came to. Where nothing has changed
// nothing was saved.
func (l *live) tellCheckpoint(c checkpointed) {
	switch {
	case c.err != nil:
		l.writer.Record(events.SaveFailed, events.Fields{"code": string(fault.CodeOf(c.err)), "message": fault.MessageOf(c.err)})
	case !c.answer.Unchanged:
		l.writer.Record(events.Saved, savedFields(c.answer.Snapshot, c.answer.Default))
	}
}

// savedFields are the data of an event that tells of a snapshot.
func savedFields(s library.SnapshotInfo, d *DefaultOutcome) events.Fields {
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
		return profiles.RunCompleted, "asked"
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

// endLeft ends the runs of some sessions that a dead daemon left open, as their records
// tell. A rescue has ended those that it left live, perhaps by a start that was
// cut short after it, and what was saved of them is told; of others only the run's
// own end was not recorded any more.
func (s *Service) endLeft(ctx context.Context, of func(sessionID string) bool) error {
	open, err := s.Catalogue.OpenRuns(ctx)
	if err != nil {
		return err
	}
	for _, r := range open {
		if !of(r.SessionID) {
			continue
		}
		rec, err := s.Catalogue.Session(ctx, r.SessionID)
		if err != nil {
			return err
		}
		now := s.Now().UTC()
		end := profiles.RunEnd{RunID: r.ID, Status: profiles.RunFailed, Cause: killed, EndedAt: now}
		switch {
		case rec.Reason.Code.Killed():
			var outcome EndAnswer
			if json.Unmarshal(rec.Outcome, &outcome) == nil && outcome.Snapshot != nil {
				end.Last = append(end.Last, profiles.Event{Type: events.Saved, At: now, Data: encode(map[string]any{"snapshot_id": outcome.Snapshot.ID, "rescue": true})})
			}
		case rec.Status == profiles.StatusCompleted:
			end.Status, end.Cause = causeAsked.run()
		case rec.Status == profiles.StatusTerminated:
			end.Status, end.Cause = profiles.RunCancelled, rec.Reason.Text
		case rec.Reason.Code != "":
			end.Cause = rec.Reason.Text
		}
		end.Last = append(end.Last, events.EndedEvent(end.Status, end.Cause, now))
		if _, err := s.Catalogue.EndRun(ctx, end, events.Keep); err != nil {
			return err
		}
	}
	return nil
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
