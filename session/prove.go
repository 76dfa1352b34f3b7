package session

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
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
	if j.chrome.Frozen() {
		thaw, cancel := context.WithTimeout(ctx, thawDeadline)
		defer cancel()
		if err := j.chrome.Thaw(thaw); err != nil {
			return failed, err
		}
	}
	return s.check(ctx, j.chrome, check)
}
