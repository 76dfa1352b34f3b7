package session

import (
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// endedBefore answers an end of a session that is not live. The answer has what was saved
// of the session. If the caller asks for the default, it moves to that snapshot.
func (s *Service) endedBefore(ctx context.Context, c access.Caller, id string, r request.End) (save.EndAnswer, error) {
	answer := save.EndAnswer{Success: true, Message: "the session is not running"}
	_, err := s.inspector.Record(ctx, c, id, access.Look)
	if fault.Is(err, fault.SessionNotFound) {
		return answer, nil
	}
	if err != nil {
		return save.EndAnswer{}, err
	}
	if err := s.rescues.Await(ctx, id); err != nil {
		return save.EndAnswer{}, err
	}
	answer.Message = "the session had already ended"
	snap, err := s.deps.Catalogue.NewestSnapshot(ctx, id)
	if fault.Is(err, fault.NoSnapshot) && r.Mode != save.None {
		return save.EndAnswer{}, fault.New(fault.NoSnapshot, "session.end",
			"session %s has already ended without a save, so save_snapshot_mode cannot save it any more; give save_snapshot_mode with the first DELETE", id)
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

// moveAfterEnd moves the default to the snapshot of an ended session, by the rules of its
// end. A repeat of an end that has moved the default does not move it again, unless it
// insists: others may have moved it since.
func (s *Service) moveAfterEnd(ctx context.Context, c access.Caller, snap profiles.Snapshot, insist bool) (*save.DefaultOutcome, error) {
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
	if d := was.Default; d != nil && was.Code == "" && (d.Moved && !insist || !d.Moved) {
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
	var checked *login.Outcome
	if check := set.LoginCheck; check != nil && check.BeforeDefault {
		outcome := s.checker.BeforeDefault(ctx, snap, *check)
		if checked = &outcome; !outcome.LoggedIn {
			return &save.DefaultOutcome{Version: rec.BaseVersion, Reason: save.LoginCheckFailed, LoginCheck: checked}, nil
		}
	}
	moved, err := s.saver.MoveDefault(ctx, snap, profiles.Move{From: rec.BaseVersion, Overwrite: insist || !rec.FromDefault}, checked)
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
