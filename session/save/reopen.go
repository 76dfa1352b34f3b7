package save

import (
	"context"
	"errors"
	"slices"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// The reasons why Chrome is started again.
const (
	AfterFailedSave = "a failed save"
	AfterCrash      = "a crash"
)

// keepRunning abandons a save before Chrome was closed: the session continues. A Chrome that
// has died meanwhile is reopened. why is the error of the save.
func (s *Saver) keepRunning(ctx context.Context, j Job, doc state.Document, why error) EndResult {
	look, cancel := context.WithTimeout(ctx, restore.ThawDeadline)
	defer cancel()
	err := j.Chrome.Thaw(look)
	if err == nil {
		// The pipe of a Chrome that has just died closes before its last process ends. A
		// Chrome that is only slow to answer counts as alive.
		if _, err = j.Chrome.Pages(look); look.Err() != nil {
			err = nil
		}
	}
	select {
	case <-j.Chrome.Done():
		return s.reopen(ctx, j, doc, becauseOfChrome(why, "Chrome died"))
	default:
	}
	if err != nil {
		return s.reopen(ctx, j, doc, becauseOfChrome(why, "Chrome no longer answered"))
	}
	return EndResult{Err: failedBecause(why, "nothing was stored, and the session continues unchanged; try again"), Chrome: j.Chrome}
}

// becauseOfChrome returns the error of a save whose Chrome died or no longer answered: what
// failed in Chrome failed because of that. A failed store is another reason.
func becauseOfChrome(why error, what string) error {
	switch fault.CodeOf(why) {
	case fault.StoreFull, fault.StoreFailed, fault.SaveFailed:
		return why
	default:
		return fault.Wrap(why, fault.BrowserFailed, "session.save", what)
	}
}

// reopen abandons a save after Chrome was closed: a new Chrome starts on the same
// profile. If that fails too, the profile is kept.
func (s *Saver) reopen(ctx context.Context, j Job, doc state.Document, why error) EndResult {
	if err := j.Chrome.Kill(ctx); err != nil {
		return EndResult{Err: failedBecause(errors.Join(why, err), "Chrome could not be ended, and its data is kept; resume the session to try again"), Document: doc}
	}
	switch {
	case doc.Datadir == state.DatadirClean:
		doc = s.cfg.Datadirs.Compare(ctx, j.Dir.Profile(), doc)
	case doc.Complete: // the state was read before Chrome died: the document wins
		doc.Datadir = state.DatadirCrash
	default: // only the profile is left
		doc, _ = s.documentAfterCrash(ctx, j)
	}
	again, err := s.Restart(ctx, j.Session, j.Dir, doc, j.Options, AfterFailedSave)
	if err != nil {
		doc.Datadir = state.DatadirCrash // the Chrome that failed to start may have written to the profile
		return EndResult{Err: failedBecause(errors.Join(why, err), "Chrome could not be reopened, and its data is kept; resume the session to try again"), Document: doc}
	}
	return EndResult{Err: failedBecause(why, "nothing was stored, and Chrome was reopened, so the session continues with what its restore report lists; try again"),
		Chrome: again.Chrome, Reopened: &again}
}

// Restart starts a new Chrome on a session's own user data directory, with its last
// reading, and reports what was restored. why is [AfterFailedSave] or [AfterCrash].
func (s *Saver) Restart(ctx context.Context, rec profiles.Session, dir *browser.Dir, doc state.Document, o browser.Options, why string) (restore.StartResult, error) {
	notes, err := agent.NotesToSave(ctx, s.cfg.Records, rec)
	if fault.Is(err, fault.CatalogueUnavailable) {
		// The session continues meanwhile. Newer notes stay in the catalogue, and the next
		// save reads them there.
		notes, err = agent.RestoredNotes(rec)
	}
	if err != nil {
		return restore.StartResult{}, err
	}
	doc.Missed = append(slices.Clone(doc.Missed), lostExtensionStorage(doc, o.Extensions)...)
	return s.cfg.Restorer.Reopen(ctx, restore.ReopenRequest{SessionID: rec.ID, Dir: dir, Document: doc, Options: o, Notes: notes, Why: why})
}

// failedBecause returns the error of a failed save: why it failed, as far as a client can act
// on that, and then what became of the session and what to do.
func failedBecause(why error, then string) error {
	if !actionable(why) {
		return fault.Wrap(why, fault.SaveFailed, "session.save", "the save failed; "+then)
	}
	return fault.Wrap(why, fault.CodeOf(why), "session.save", "the save failed: "+fault.MessageOf(why)+"; "+then)
}

// Failure returns the error of a failed save. It keeps the code of err if a client can
// act on it; otherwise the code is save_failed.
func Failure(err error, message string) error {
	switch {
	case !actionable(err):
		return fault.Wrap(err, fault.SaveFailed, "session.save", message)
	case message == "":
		return err
	default:
		return fault.Wrap(err, fault.CodeOf(err), "session.save", message+": "+fault.MessageOf(err))
	}
}

// actionable reports whether a client can act on the code of a failed save.
func actionable(err error) bool {
	switch fault.CodeOf(err) {
	case fault.SaveFailed, fault.StoreFull, fault.StoreFailed, fault.CatalogueUnavailable, fault.Timeout, fault.BrowserFailed, fault.QuotaExceeded, fault.NodeLost:
		return true
	default:
		return false
	}
}
