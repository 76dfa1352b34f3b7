package rescue

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/save"
)

// Killed is the reason text of runs and sessions that a dead daemon left. BeingRescued is
// that of a session until its data is saved.
const (
	Killed       = "the daemon was killed"
	BeingRescued = Killed + "; what the session left is being rescued"
)

var errMissing = errors.New("its user data directory is missing")

// recoverOne saves what one session of a dead daemon left, and ends its record and its
// runs. After an error it may be called again, because the data is kept.
func (r *Rescues) recoverOne(ctx context.Context, rec profiles.Session, dir *browser.Dir) error {
	now, err := r.cfg.Records.Session(ctx, rec.ID)
	if err != nil {
		return err
	}
	if r.cfg.NodeID != "" && !r.holds(now, rec) {
		return r.rescueLate(ctx, rec, dir)
	}
	if now.EndedAt.IsZero() { // otherwise an earlier try rescued it and failed later
		r.removeIncomplete(ctx, rec, dir)
		if err := r.rescue(ctx, rec, dir); err != nil {
			return err
		}
	}
	return r.endRuns(ctx, func(of profiles.Session) bool { return of.ID == rec.ID })
}

// rescue saves a session that a dead daemon left live, and ends its record. If its
// profile cannot be saved, the record says so and the profile is removed; the last good
// snapshot stays. If the store or the catalogue fails, or ctx ends, rescue returns an
// error and the data stays, because that can be repaired.
func (r *Rescues) rescue(ctx context.Context, rec profiles.Session, dir *browser.Dir) error {
	why := error(nil)
	switch {
	case rec.Discard:
	case dir == nil && r.cfg.NodeID != "":
		return r.endMissing(ctx, rec)
	case dir == nil || !browser.HasProfile(dir):
		why = errMissing
	default:
		j := r.restoreSealed(save.Job{Session: rec, Dir: dir, Dead: true, Rescue: true, Mode: save.Filesystem,
			Status: profiles.StatusTerminated, Reason: profiles.ReasonKilled.With(Killed), Check: r.checkHeld(rec)})
		e := r.cfg.Saver.Rescue(ctx, j)
		if e.Err == nil {
			r.cfg.Log.Info("a session was rescued", "session", rec.ID, "snapshot", e.Answer.Snapshot.ID)
			r.cfg.Ended(rec, e.Answer.Snapshot.ID, nil)
			return nil
		}
		if errors.Is(e.Err, errTakenOver) {
			return errTakenOver
		}
		code := fault.CodeOf(e.Err)
		if ctx.Err() != nil {
			code = fault.ShuttingDown // whatever the code, the data is not the cause
		}
		if code != fault.SaveFailed {
			return fault.Wrap(e.Err, code, "session.rescue",
				"session "+rec.ID+" could not be rescued yet; its data is kept and the rescue is tried again: "+fault.MessageOf(e.Err))
		}
		why = e.Err
	}
	reason := profiles.ReasonKilled.With(Killed)
	if why != nil {
		reason = profiles.ReasonNotRescued.With(Killed + "; nothing could be rescued")
		r.cfg.Log.Error("a session could not be rescued: its unsaved data is lost; its last stored snapshot stays", "session", rec.ID, "error", why)
	}
	if err := r.cfg.Saver.EndSession(ctx, profiles.End{SessionID: rec.ID, Status: profiles.StatusTerminated,
		Reason: reason, EndedAt: r.cfg.Now().UTC(), Check: r.checkHeld(rec)}, false); err != nil {
		return err
	}
	r.cfg.Ended(rec, "", why)
	if dir != nil {
		browsers.Remove(dir, r.cfg.Log)
	}
	return nil
}

// removeIncomplete removes what an interrupted save of the session left in the store.
// Such a save also left the run directory. If there is none, the catalogue was restored
// from a backup, and a snapshot that it does not know may be the only one: it stays.
func (r *Rescues) removeIncomplete(ctx context.Context, rec profiles.Session, dir *browser.Dir) {
	if dir == nil {
		return
	}
	err := r.cfg.Archives.RemoveUncommitted(ctx, library.LocationOf(rec.UserID, rec.ID), func(id string) (bool, error) { return r.committed(ctx, id) })
	if err != nil {
		r.cfg.Log.Warn("the files of an interrupted save could not be removed from the store; stop the daemon and run `stasis store check --remove-orphans`", "session", rec.ID, "error", err)
	}
}

// committed reports whether the catalogue has the snapshot.
func (r *Rescues) committed(ctx context.Context, id string) (bool, error) {
	_, err := r.cfg.Records.Snapshot(ctx, id)
	if fault.Is(err, fault.SnapshotNotFound) {
		return false, nil
	}
	return err == nil, err
}
