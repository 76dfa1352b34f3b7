package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// captureDeadline bounds the reading of a whole environment over CDP.
const captureDeadline = 30 * time.Second

// end carries an ending out. It never returns with anything half done: the
// session has ended, or it runs on, or its datadir is kept and it is in error.
func (s *Service) end(j job) ended {
	ctx := s.ctx
	if j.chrome != nil && !j.dead {
		// Clients that do not let go are cut off when Chrome ends.
		_ = j.chrome.CloseClients(ctx, mux.CloseSessionEnded, "session_ended")
	}
	if j.restart {
		return s.restart(ctx, j)
	}
	proven, err := s.prove(ctx, j)
	switch {
	case err != nil && j.chrome != nil:
		return s.runOn(ctx, j, j.doc, err)
	case err != nil:
		return ended{err: saveFailed(err, ""), doc: j.doc}
	}
	j = proven
	switch {
	case j.mode == SaveNone:
		return s.throwAway(ctx, j)
	case j.dead || j.chrome == nil:
		return s.saveLeft(ctx, j)
	case j.mode == SaveMemory:
		return s.saveMemory(ctx, j)
	default:
		return s.saveFilesystem(ctx, j)
	}
}

// throwAway ends the browser and keeps nothing.
func (s *Service) throwAway(ctx context.Context, j job) ended {
	answer := EndAnswer{Success: true, Deleted: true, Message: "session ended, nothing was saved", UnsavedChanges: j.used}
	err := s.endSession(ctx, profiles.End{SessionID: j.rec.ID, Status: j.status, Reason: j.reason,
		EndedAt: s.Now().UTC(), Outcome: func(profiles.Moved) (jsonRaw, error) { return encode(answer), nil }}, j.untold)
	switch {
	case err != nil && j.dead: // there is no Chrome to run on
		return ended{err: err, doc: crashed(j, s.Now())}
	case err != nil:
		return ended{err: err, chrome: j.chrome, doc: j.doc}
	}
	s.drop(ctx, j)
	return ended{answer: answer, over: true}
}

// drop ends the browser and removes the run directory.
func (s *Service) drop(ctx context.Context, j job) {
	if j.chrome != nil {
		s.discard(ctx, j.chrome)
		return
	}
	s.clear(j.dir)
}

// saveFilesystem reads the state, closes Chrome, and keeps what it left.
func (s *Service) saveFilesystem(ctx context.Context, j job) ended {
	doc, err := s.capture(ctx, j)
	if err != nil {
		return s.runOn(ctx, j, doc, err)
	}
	if doc.Datadir, err = j.chrome.Close(ctx); err != nil {
		return ended{err: saveFailed(err, "Chrome could not be closed"), doc: doc}
	}
	files, err := s.Datadirs.Select(ctx, j.dir.Profile())
	if err != nil {
		return s.reopen(ctx, j, doc, err)
	}
	answer, _, err := s.keep(ctx, j, doc, files)
	if err != nil {
		return s.reopen(ctx, j, doc, err)
	}
	s.clear(j.dir)
	return ended{answer: answer, over: true}
}

// saveMemory freezes Chrome, keeps a copy of what it has on disk, and parks it.
func (s *Service) saveMemory(ctx context.Context, j job) ended {
	// What is parked keeps its memory, so it gives back what it can while it is read.
	var trimming sync.WaitGroup
	trimming.Go(func() { j.chrome.Trim(ctx) })
	doc, err := s.capture(ctx, j)
	trimming.Wait()
	if err != nil {
		return s.runOn(ctx, j, doc, err)
	}
	if err := j.chrome.Freeze(ctx); err != nil {
		return s.runOn(ctx, j, doc, err)
	}
	files, err := j.chrome.Environment(ctx)
	if err == nil {
		j.notes, err = agent.NotesToSave(ctx, s.Catalogue, j.rec)
	}
	if err != nil {
		return s.runOn(ctx, j, doc, err)
	}
	answer, _, err := s.keep(ctx, j, doc, files)
	if err != nil {
		return s.runOn(ctx, j, doc, err)
	}
	if err := s.capacity.Park(context.WithoutCancel(ctx), answer.Snapshot.ID, &restore.Parked{Chrome: j.chrome, Clear: s.clear, Document: doc, Partial: j.partial, Extensions: j.again.Extensions, Notes: j.notes}); err != nil {
		s.Log.Error("a Chrome that gave way to a parked one could not be ended", "error", err)
	}
	return ended{answer: answer, over: true}
}

// saveLeft keeps the datadir of a Chrome that is no more.
func (s *Service) saveLeft(ctx context.Context, j job) ended {
	doc := j.doc
	if !doc.Complete {
		doc = crashed(j, s.Now())
	}
	if j.chrome != nil {
		if err := j.chrome.Kill(ctx); err != nil {
			return ended{err: saveFailed(err, "what is left of Chrome could not be ended"), doc: doc}
		}
	}
	if !doc.Complete {
		var from string
		doc, from = s.left(ctx, j)
		j.label = readBy(from)
	}
	files, err := s.Datadirs.Select(ctx, j.dir.Profile())
	if err != nil {
		return ended{err: saveFailed(err, ""), doc: doc}
	}
	answer, _, err := s.keep(ctx, j, doc, files)
	if err != nil {
		return ended{err: saveFailed(err, ""), doc: doc}
	}
	s.clear(j.dir)
	return ended{answer: answer, over: true}
}

// readBy is the label of a rescue that has what a snapshot had read; "" of one that
// has nothing of any.
func readBy(snapshot string) string {
	if snapshot == "" {
		return ""
	}
	return "with what snapshot " + snapshot + " had read"
}

// crashed is the document of a datadir whose Chrome died unread.
func crashed(j job, now time.Time) state.Document {
	return state.Document{SchemaVersion: state.SchemaVersion, CapturedAt: now.UTC(), Datadir: state.DatadirCrash,
		Chrome: state.Chrome{Engine: j.rec.Engine}, TabsByURL: j.rec.Engine == browser.EngineShell, Overrides: j.again.Overrides, Missed: j.missed}
}

// capture checks the store and its room, and reads the state.
func (s *Service) capture(ctx context.Context, j job) (state.Document, error) {
	wake, cancel := context.WithTimeout(ctx, captureDeadline)
	defer cancel()
	if err := j.chrome.Wake(wake); err != nil {
		return state.Document{}, err
	}
	files, err := s.checkRoom(wake, j)
	if err != nil {
		return state.Document{}, err
	}
	return s.read(wake, j, files)
}

// checkRoom lists the environment's files, and checks the store and its room for
// them. Chrome still writes, so the list is a guess; the guess errs upward, for
// what is stored is compressed.
func (s *Service) checkRoom(ctx context.Context, j job) ([]browser.File, error) {
	files, err := j.chrome.Environment(ctx)
	if err != nil {
		return nil, err
	}
	need := browser.Size(files)
	if !j.origins.All() || j.goesOn {
		need *= 2 // they are copied first; the copy may lie on the store's disk
	}
	if err := s.Vault.CheckRoom(ctx, need); err != nil {
		return nil, err
	}
	// A store that is read-only or away is better known before Chrome is closed.
	return files, s.Vault.Health(ctx)
}

// read reads the state, and refuses what could not be restored.
func (s *Service) read(ctx context.Context, j job, files []browser.File) (state.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, captureDeadline)
	defer cancel()
	doc, err := j.chrome.Capture(ctx)
	if err != nil {
		return doc, err
	}
	return doc, s.fits(files, doc)
}

// runOn gives a save up before Chrome was closed: the session goes on. If
// Chrome has died meanwhile it is reopened.
func (s *Service) runOn(ctx context.Context, j job, doc state.Document, why error) ended {
	look, cancel := context.WithTimeout(ctx, restore.ThawDeadline)
	defer cancel()
	err := j.chrome.Thaw(look)
	if err == nil {
		// A Chrome that has just died still has processes to lose; its pipe
		// says so first. One that is merely slow to answer lives.
		if _, err = j.chrome.Pages(look); look.Err() != nil {
			err = nil
		}
	}
	select {
	case <-j.chrome.Done():
		return s.reopen(ctx, j, doc, why)
	default:
	}
	if err != nil {
		return s.reopen(ctx, j, doc, why)
	}
	return ended{err: saveFailed(why, "the save failed and nothing was stored; the session runs on"), chrome: j.chrome}
}

// reopen gives a save up after Chrome was closed: a new Chrome takes the same
// datadir. If that fails too, the datadir is kept.
func (s *Service) reopen(ctx context.Context, j job, doc state.Document, why error) ended {
	if err := j.chrome.Kill(ctx); err != nil {
		return ended{err: saveFailed(errors.Join(why, err), "the save failed and Chrome could not be ended"), doc: doc}
	}
	switch {
	case doc.Datadir == state.DatadirClean:
		doc = s.Datadirs.Compare(ctx, j.dir.Profile(), doc)
	case doc.Complete: // it was read before it died: that wins
		doc.Datadir = state.DatadirCrash
	default: // only its datadir is left
		doc, _ = s.left(ctx, j)
	}
	again, err := s.startAgain(ctx, j.rec, j.dir, doc, j.again, failedSave)
	if err != nil {
		doc.Datadir = state.DatadirCrash // the Chrome that did not come up may have had it open
		return ended{err: saveFailed(errors.Join(why, err),
			"the save failed and Chrome could not be reopened; the data is kept, resume the session to try again"), doc: doc}
	}
	return ended{err: saveFailed(why, "the save failed and nothing was stored; Chrome was reopened and the session runs on; its restore report tells what came back"),
		chrome: again.Chrome, reopened: &again}
}

// saveFailed gives a failed save its code: that of the cause where a client
// can act on it, else save_failed.
func saveFailed(err error, message string) error {
	switch code := fault.CodeOf(err); code {
	case fault.SaveFailed, fault.StoreFull, fault.StoreFailed, fault.Timeout, fault.BrowserFailed:
		if message == "" {
			return err
		}
		return fault.Wrap(err, code, "session.save", message+": "+fault.MessageOf(err))
	default:
		return fault.Wrap(err, fault.SaveFailed, "session.save", message)
	}
}
