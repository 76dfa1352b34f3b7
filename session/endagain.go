package session

import (
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// endedBefore answers an end of a session that is not live. The answer has what was saved
// of the session. If the caller asks for the default, it moves to that snapshot. If nothing
// was saved and the profile is kept (--undo-window), it is saved now.
func (s *Service) endedBefore(ctx context.Context, c access.Caller, id string, r request.End) (save.EndAnswer, error) {
	answer := save.EndAnswer{Success: true, Message: "the session is not running"}
	rec, err := s.inspector.Record(ctx, c, id, access.Look)
	if fault.Is(err, fault.SessionNotFound) && r.Mode == save.None {
		return answer, nil
	}
	if err != nil {
		return save.EndAnswer{}, err
	}
	if livesElsewhere(s.deps.Node, rec) { // it has moved since the call was found to belong here
		return save.EndAnswer{}, ErrMoving
	}
	if err := s.rescues.Await(ctx, id); err != nil {
		return save.EndAnswer{}, err
	}
	if r.Mode != save.None {
		saved, found, err := s.saveDiscarded(ctx, c, id, r)
		if found || err != nil {
			return saved, err
		}
	}
	answer.Message = "the session had already ended"
	was, ended := endOf(rec)
	answer.UnsavedChanges = was.UnsavedChanges
	if until, kept := s.undo.Until(id); kept {
		answer.Message = was.Message
		answer = answer.Undoable(until)
	}
	snap, err := s.deps.Catalogue.NewestSnapshot(ctx, id)
	if r.Mode != save.None && (fault.Is(err, fault.NoSnapshot) || err == nil && ended && was.Snapshot == nil) {
		return save.EndAnswer{}, s.notUndone(id, snap.ID)
	}
	if fault.Is(err, fault.NoSnapshot) {
		return answer, nil
	}
	if err != nil {
		return save.EndAnswer{}, err
	}
	info := library.InfoOf(snap, s.deps.Now())
	answer.Snapshot = &info
	if !r.SaveAsDefault {
		return answer, nil
	}
	moved, err := s.moveAfterEnd(ctx, c, snap, r.Conflict == save.Overwrite)
	if err != nil {
		return save.EndAnswer{}, err
	}
	return answer.AfterEnd(moved), nil
}

// afterCrash says why a default does not move to what was saved after a crash: a login of
// the last half minute may not have been on disk.
const afterCrash = "the session crashed, and its snapshot may lack what Chrome had not written, such as cookies of the last 30 seconds"

// moveAfterEnd moves the default to the snapshot of an ended session, by the rules of its
// end. A repeat of an end that has moved the default does not move it again, unless it
// asks to overwrite: others may have moved it since.
func (s *Service) moveAfterEnd(ctx context.Context, c access.Caller, snap profiles.Snapshot, overwrite bool) (*save.DefaultOutcome, error) {
	rec, err := s.inspector.Record(ctx, c, snap.SessionID, access.Drive)
	if err != nil {
		return nil, err
	}
	var was save.EndAnswer
	if rec.Outcome != nil {
		if err := json.Unmarshal(rec.Outcome, &was); err != nil {
			return nil, fault.Wrap(err, fault.StoreFailed, "session.end", "the recorded answer to the first end cannot be read")
		}
	}
	if d := was.Default; d != nil && was.Code == "" && (d.Moved && !overwrite || !d.Moved) {
		d.Moved = false
		if d.Reason == "" {
			d.Reason = "the first call has moved it already"
		}
		return d, nil
	}
	set, err := s.users.For(ctx, snap.UserID)
	if err != nil && !fault.Is(err, fault.UserNotFound) {
		return nil, err
	}
	if snap.Rescue && state.Datadir(snap.Datadir) == state.DatadirCrash && !overwrite {
		d, err := s.deps.Catalogue.Default(ctx, snap.UserID)
		if err == nil { // there is something to lose
			return &save.DefaultOutcome{Version: d.Version, AfterCrash: true, Reason: afterCrash}, nil
		}
		if !fault.Is(err, fault.DefaultNotFound) {
			return nil, err
		}
	}
	var checked *login.Outcome
	if check := set.LoginCheck; check != nil && check.BeforeDefault {
		outcome := s.checker.BeforeDefault(ctx, c, snap, *check)
		if checked = &outcome; !outcome.LoggedIn {
			return &save.DefaultOutcome{Version: rec.BaseVersion, Reason: save.LoginCheckFailed, LoginCheck: checked}, nil
		}
	}
	moved, err := s.saver.MoveDefault(ctx, snap, profiles.Move{From: rec.BaseVersion, Overwrite: overwrite || !rec.FromDefault}, checked)
	if err != nil || !moved.Moved {
		return moved, err
	}
	was.Success, was.Code, was.Default = true, "", moved
	_, err = s.deps.Catalogue.UpdateSession(ctx, rec.ID, func(now *profiles.Session) error {
		if !now.EndedAt.IsZero() && now.Outcome != nil { // else it was resumed meanwhile
			now.Outcome = profiles.JSON(was)
		}
		return nil
	})
	return moved, err
}

// endOf returns the recorded answer to the end of a session; ended is false if there is none.
func endOf(rec profiles.Session) (was save.EndAnswer, ended bool) {
	ended = !rec.EndedAt.IsZero() && rec.Outcome != nil && json.Unmarshal(rec.Outcome, &was) == nil
	return was, ended
}

// notUndone returns the error for a save that comes too late. checkpoint is the session's
// newest snapshot; "": none.
func (s *Service) notUndone(id, checkpoint string) error {
	why := "ask for the save at the first end, with save_snapshot_mode"
	if s.undo.On() {
		why = "its profile is no longer kept (--undo-window); " + why
	}
	if checkpoint != "" {
		why += "; its newest checkpoint is " + checkpoint
	}
	return fault.New(fault.NoSnapshot, "session.end",
		"session %s has already ended without a save, and cannot be saved any more; %s", id, why)
}

// saveDiscarded saves the profile of a session that was discarded at its end; found is false
// if it is not kept. After an error it is still kept.
func (s *Service) saveDiscarded(ctx context.Context, c access.Caller, id string, r request.End) (_ save.EndAnswer, found bool, err error) {
	if !s.undo.On() {
		return save.EndAnswer{}, false, nil
	}
	if _, err := s.inspector.Record(ctx, c, id, access.Drive); err != nil {
		return save.EndAnswer{}, false, err
	}
	if _, kept := s.undo.Until(id); kept && r.Mode == save.Memory {
		return save.EndAnswer{}, false, fault.New(fault.InvalidField, "session.end",
			"save_snapshot_mode: must be filesystem; session %s has ended, and only its files are kept", id)
	}
	_, release, err := nodeClaims{s}.claimID(ctx, c.KeyID, id) // a resume would take it too
	if code := fault.CodeOf(err); err != nil && code != fault.SessionExists && code != fault.RequestInProgress {
		return save.EndAnswer{}, false, err
	}
	if err != nil {
		return save.EndAnswer{}, false, fault.New(fault.SessionEnding, "session.end", "session %s is being saved or resumed by another request; repeat the call for its answer", id)
	}
	rec, err := s.deps.Catalogue.Session(ctx, id) // after the claim: it does not change any more
	if err != nil {
		release()
		return save.EndAnswer{}, false, err
	}
	return s.undoDiscard(ctx, rec, r, release)
}

// undoDiscard is saveDiscarded for a session whose ID the caller has claimed. It calls
// release when the profile is saved, or is not kept.
func (s *Service) undoDiscard(ctx context.Context, rec profiles.Session, r request.End, release func()) (_ save.EndAnswer, found bool, err error) {
	kept, found := s.undo.Take(rec.ID)
	if !found {
		release()
		return save.EndAnswer{}, false, nil
	}
	if !sameEnd(rec, kept.Job.Session) { // another node has resumed it since
		browsers.Remove(kept.Job.Dir, s.deps.Log)
		release()
		return save.EndAnswer{}, false, nil
	}
	j := kept.Job
	j.Check = func(now profiles.Session) error {
		if !sameEnd(now, rec) {
			return fault.New(fault.NodeLost, "session.end", "session %s was resumed on another node meanwhile, so what it had at its former end is not saved", rec.ID)
		}
		return nil
	}
	j.Session, j.AfterEnd, j.Mode, j.Origins = rec, true, save.Filesystem, r.Origins // its Chrome cannot be parked any more
	if r.SaveAsDefault {
		j.Move, j.DefaultAsked = &profiles.Move{From: rec.BaseVersion, Overwrite: r.Conflict == save.Overwrite || !rec.FromDefault}, true
		if j.Partial && j.Origins.All() {
			j.Move, j.NotMoved = nil, partialEnvironment
		}
	}
	result := make(chan save.EndResult, 1)
	work, stop := s.creates.until(s.ctx)
	s.work.Go(func() { // the save continues if the caller disconnects
		defer stop()
		e := s.saver.End(work, j)
		if e.Err != nil {
			s.undo.Add(kept)
		}
		release() // before the answer: the caller may resume at once
		result <- e
	})
	select {
	case e := <-result:
		return e.Answer, true, e.Err
	case <-ctx.Done():
		return save.EndAnswer{}, true, fault.Wrap(ctx.Err(), fault.Timeout, "session.end", "the session is still being saved; GET the session for its outcome")
	}
}

// sameEnd reports whether two records of a session are of the same end.
func sameEnd(a, b profiles.Session) bool {
	return !a.EndedAt.IsZero() && a.EndedAt.Equal(b.EndedAt) && a.RunDir == b.RunDir
}
