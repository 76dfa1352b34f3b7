package session

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/restore"
)

// loginCheckFailed is why a default does not move whose user asks for proof of
// the login first.
const loginCheckFailed = "login_check_failed"

// prove runs the user's login check before a save may move the default, where
// the user's settings ask for it. It runs in the session's own browser, which
// no client drives any more. A job whose login is not proven moves nothing: a
// browser that was logged out does not take a good login's place.
func (s *Service) prove(ctx context.Context, j job) (job, error) {
	if j.move == nil || j.mode == SaveNone {
		return j, nil
	}
	set, err := s.settings(ctx, j.rec.UserID)
	if err != nil || set.LoginCheck == nil || !set.LoginCheck.BeforeDefault {
		return j, err
	}
	outcome, err := s.checkOwn(ctx, j, *set.LoginCheck)
	if err != nil {
		s.Log.Warn("a login check before a save could not be run", "session", j.rec.ID, "error", err)
		text := "the session's Chrome could not be asked: " + fault.CodeOf(err).Text()
		outcome.Error = &text
	}
	if j.checked = &outcome; !outcome.LoggedIn {
		j.move, j.held = nil, loginCheckFailed
	}
	return j, nil
}

// checkOwn runs a check in the browser of a session that is being ended.
func (s *Service) checkOwn(ctx context.Context, j job, check LoginCheck) (LoginOutcome, error) {
	failed := LoginOutcome{CheckedAt: s.Now().UTC(), Conditions: []browser.Condition{}}
	if j.dead || j.chrome == nil {
		return failed, fault.New(fault.BrowserFailed, "session.check", "the session has no Chrome any more")
	}
	wake, cancel := context.WithTimeout(ctx, restore.ThawDeadline)
	defer cancel()
	if err := j.chrome.Wake(wake); err != nil {
		return failed, err
	}
	return s.check(ctx, j.chrome, check)
}

// proveImport runs the login check of a user in a Chrome of its own on what was
// imported, and then moves the default. The snapshot is there whatever comes
// of it.
func (s *Service) proveImport(ctx context.Context, id string, check LoginCheck, m profiles.Move) (*DefaultOutcome, error) {
	snap, err := s.Catalogue.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	outcome, err := s.checkSnapshot(ctx, snap, check)
	if err != nil {
		outcome = s.notAsked(err)
		s.Log.Warn("a login check of an import could not be run", "snapshot", id, "error", err)
	}
	if !outcome.LoggedIn {
		return &DefaultOutcome{Version: m.From, Reason: loginCheckFailed, LoginCheck: &outcome}, nil
	}
	return s.moveTo(ctx, snap, m, &outcome)
}

// moveTo moves the default of a snapshot's user to it, and tells what came of it.
func (s *Service) moveTo(ctx context.Context, snap profiles.Snapshot, m profiles.Move, checked *LoginOutcome) (*DefaultOutcome, error) {
	told := &DefaultOutcome{Version: m.From, LoginCheck: checked}
	now, err := s.Catalogue.Default(ctx, snap.UserID)
	switch {
	case err == nil && now.SnapshotID == snap.ID:
		told.Version, told.Reason = now.Version, "it is the default already"
		return told, nil
	case err != nil && !fault.Is(err, fault.DefaultNotFound):
		return nil, err
	}
	from := &m.From
	switch {
	case m.Overwrite:
		from = nil
	case m.Takes(now):
		from = &now.Version
	}
	defer s.capacity.DefaultChanged()
	d, err := s.Catalogue.SetDefault(ctx, snap.UserID, snap.ID, from, s.Now().UTC())
	switch {
	case fault.Is(err, fault.VersionConflict):
		told.Version, told.Reason = now.Version, fault.MessageOf(err)
	case err != nil:
		return nil, err
	default:
		told.Moved, told.Version = true, d.Version
	}
	return told, nil
}
