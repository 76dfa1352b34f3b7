package session

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// beingRescued is the text of the reason of a session that a dead daemon left live, until
// its data is saved.
const beingRescued = killed + "; what the session left is being rescued"

// recoverOne saves what one session of a dead daemon left, and ends its record
// and its runs. It may be called again after an error: the data is kept.
func (s *Service) recoverOne(ctx context.Context, rec profiles.Session, dir *browser.Dir) error {
	now, err := s.Catalogue.Session(ctx, rec.ID)
	if err != nil {
		return err
	}
	if now.EndedAt.IsZero() { // else it was rescued by a try that failed after that
		s.takeBack(ctx, rec, dir)
		if err := s.rescue(ctx, rec, dir); err != nil {
			return err
		}
	}
	return s.endLeft(ctx, func(sessionID string) bool { return sessionID == rec.ID })
}

// rescue ends the record of a session that a dead daemon left live. Where its
// datadir cannot be saved, the record says why and the datadir is cleared: the
// last good snapshot stands. Where the store or the catalogue is at fault it is an
// error, and the data stays: they can be mended. The same holds when ctx ends.
func (s *Service) rescue(ctx context.Context, rec profiles.Session, dir *browser.Dir) error {
	why := error(nil)
	switch {
	case rec.Discard:
	case dir == nil || !browser.HasProfile(dir):
		why = errors.New("its data is gone")
	default:
		j := s.unsaved(job{rec: rec, dir: dir, dead: true, rescue: true, mode: SaveFilesystem,
			status: profiles.StatusTerminated, reason: profiles.ReasonKilled.With(killed)})
		e := s.saveLeft(ctx, j)
		s.Meter.Saved(SavedRescue, saveOutcome(e.err))
		if e.err == nil {
			s.Log.Info("a session was rescued", "session", rec.ID, "snapshot", e.answer.Snapshot.ID)
			return nil
		}
		code := fault.CodeOf(e.err)
		if ctx.Err() != nil {
			code = fault.ShuttingDown // whatever the code, it is not the data that is at fault
		}
		if code != fault.SaveFailed {
			return fault.Wrap(e.err, code, "session.rescue",
				"what session "+rec.ID+" left could not be rescued yet, is kept, and is tried again: "+fault.MessageOf(e.err))
		}
		why = e.err
	}
	reason := profiles.ReasonKilled.With(killed)
	if why != nil {
		reason = profiles.ReasonNotRescued.With(killed + "; nothing could be rescued")
		s.Log.Error("a session could not be rescued", "session", rec.ID, "error", why)
	}
	if err := s.endSession(ctx, profiles.End{SessionID: rec.ID, Status: profiles.StatusTerminated,
		Reason: reason, EndedAt: s.Now().UTC()}, false); err != nil {
		return err
	}
	if dir != nil {
		s.clear(dir)
	}
	return nil
}
