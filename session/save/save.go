package save

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/restore"
)

// Restarting is the reason with which clients are closed that may connect again at the same URL.
const Restarting = "service restart"

// End ends a session as the job says. Afterwards the session has ended, or it continues,
// or it is in the state error and its user data directory is kept. ctx is the daemon's
// own: a save continues after its request has ended.
func (s *Saver) End(ctx context.Context, j Job) EndResult {
	if j.Chrome != nil && !j.Dead {
		code, reason := mux.CloseSessionEnded, "session_ended"
		if j.moves() {
			code, reason = mux.CloseRestarting, Restarting
		}
		// Closing Chrome disconnects the clients that ignore this.
		_ = j.Chrome.CloseClients(ctx, code, reason)
	}
	if j.Restart {
		return s.endIncomplete(ctx, j, s.restart(ctx, j))
	}
	e := s.endIncomplete(ctx, j, s.end(ctx, j))
	if j.Mode != None {
		s.cfg.Meter.Saved(j.kind(), ResultOf(e.Err))
	}
	return e
}

func (s *Saver) end(ctx context.Context, j Job) EndResult {
	checkedJob, err := s.checkLogin(ctx, j)
	switch {
	case err != nil && j.Chrome != nil:
		return s.keepRunning(ctx, j, j.Document, err)
	case err != nil:
		return EndResult{Err: Failure(err, ""), Document: j.Document}
	}
	j = checkedJob
	switch {
	case j.Mode == None:
		return s.discard(ctx, j)
	case j.Dead || j.Chrome == nil:
		return s.saveProfile(ctx, j)
	case j.Mode == Memory:
		return s.saveMemory(ctx, j)
	default:
		return s.saveFilesystem(ctx, j)
	}
}

// discard ends the browser and saves nothing. The profile of an undoable job is kept for a
// while, if Chrome can be read and closed.
func (s *Saver) discard(ctx context.Context, j Job) EndResult {
	answer := EndAnswer{Success: true, Deleted: true, Message: "session ended, nothing was saved", UnsavedChanges: j.Used}
	if j.Reason.Code == profiles.ReasonDiskLimit { // nobody asked for it
		answer.Success, answer.Message = false, "nothing was saved: "+j.Reason.Text
	}
	readable := j.Undoable && s.cfg.Undo.On() && j.Chrome != nil && !j.Dead
	if readable {
		doc, err := s.Capture(ctx, j)
		if readable = err == nil; readable {
			j.Document = doc
		} else {
			s.cfg.Log.Warn("a discarded session is not kept for --undo-window, because it could not be read", "session", j.Session.ID, "error", err)
		}
	}
	ended := s.cfg.Now().UTC()
	err := s.EndSession(ctx, profiles.End{SessionID: j.Session.ID, Status: j.Status, Reason: j.Reason,
		EndedAt: ended, Outcome: func(profiles.MoveResult) (json.RawMessage, error) { return profiles.JSON(answer), nil }}, j.CrashUnreported)
	switch {
	case err != nil && j.Dead: // there is no Chrome that could continue
		return EndResult{Err: err, Document: crashedDocument(j, s.cfg.Now())}
	case err != nil:
		return EndResult{Err: err, Chrome: j.Chrome, Document: j.Document}
	}
	j.Session.EndedAt = ended
	if until, kept := s.keepDiscarded(ctx, j, readable); kept {
		answer = answer.Undoable(until)
	}
	return EndResult{Answer: answer, SessionEnded: true}
}

// keepDiscarded ends the Chrome of a discarded session and keeps its profile for a while if
// its state was read; otherwise it removes the profile.
func (s *Saver) keepDiscarded(ctx context.Context, j Job, readable bool) (until time.Time, kept bool) {
	if !readable {
		s.discardChrome(ctx, j)
		return until, false
	}
	var err error
	if j.Document.Datadir, err = j.Chrome.Close(ctx); err != nil {
		s.cfg.Log.Warn("a discarded session is not kept for --undo-window, because its Chrome could not be closed", "session", j.Session.ID, "error", err)
		s.discardChrome(ctx, j)
		return until, false
	}
	return s.cfg.Undo.Keep(j)
}

// discardChrome ends the browser and removes the run directory.
func (s *Saver) discardChrome(ctx context.Context, j Job) {
	if j.Chrome != nil {
		browsers.Discard(ctx, j.Chrome, s.cfg.Log)
		return
	}
	browsers.Remove(j.Dir, s.cfg.Log)
}

// saveFilesystem reads the state, closes Chrome, and saves the files.
func (s *Saver) saveFilesystem(ctx context.Context, j Job) EndResult {
	doc, err := s.Capture(ctx, j)
	if err != nil {
		return s.keepRunning(ctx, j, doc, err)
	}
	if doc.Datadir, err = j.Chrome.Close(ctx); err != nil {
		return EndResult{Err: failedBecause(err, "Chrome could not be closed, and its data is kept; resume the session to try again"), Document: doc}
	}
	files, err := s.cfg.Datadirs.Select(ctx, j.Dir.Profile())
	if err != nil {
		return s.reopen(ctx, j, doc, err)
	}
	answer, _, err := s.Keep(ctx, j, doc, files)
	if err != nil {
		return s.reopen(ctx, j, doc, err)
	}
	browsers.Remove(j.Dir, s.cfg.Log)
	return EndResult{Answer: answer, SessionEnded: true}
}

// saveMemory freezes Chrome, saves a copy of its files, and parks it.
func (s *Saver) saveMemory(ctx context.Context, j Job) EndResult {
	// A parked Chrome keeps its memory, so it frees what it can while the state is read.
	var trimming sync.WaitGroup
	trimming.Go(func() { j.Chrome.Trim(ctx) })
	doc, err := s.Capture(ctx, j)
	if err == nil && j.Chrome.AwaitTabs(ctx, doc) {
		doc, err = s.Capture(ctx, j) // so that it is no older than the files
	}
	trimming.Wait()
	if err != nil {
		return s.keepRunning(ctx, j, doc, err)
	}
	if err := j.Chrome.Freeze(ctx); err != nil {
		return s.keepRunning(ctx, j, doc, err)
	}
	files, err := j.Chrome.Environment(ctx)
	if err == nil {
		j.Notes, err = agent.NotesToSave(ctx, s.cfg.Records, j.Session)
	}
	if err != nil {
		return s.keepRunning(ctx, j, doc, err)
	}
	answer, _, err := s.Keep(ctx, j, doc, files)
	if err != nil {
		return s.keepRunning(ctx, j, doc, err)
	}
	if err := s.cfg.Ready.Park(context.WithoutCancel(ctx), answer.Snapshot.ID, j.Session, &restore.Parked{Chrome: j.Chrome, Clear: func(dir *browser.Dir) { browsers.Remove(dir, s.cfg.Log) }, Document: doc, Partial: j.Partial, Extensions: j.Options.Extensions, Notes: j.Notes}); err != nil {
		s.cfg.Log.Error("an evicted parked Chrome could not be ended; it keeps its memory until the daemon restarts", "error", err)
	}
	return EndResult{Answer: answer, SessionEnded: true}
}
