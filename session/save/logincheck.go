package save

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/settings"
)

// LoginCheckFailed is the reason why a default does not move: the user's settings require
// a login check first, and it failed.
const LoginCheckFailed = "login_check_failed"

// checkLogin makes the user's login check before a save moves the default, if the user's
// settings require it. It runs in the session's own Chrome. If the check fails, the
// returned job moves no default: a logged-out browser must not replace a good login.
func (s *Saver) checkLogin(ctx context.Context, j Job) (Job, error) {
	if j.Move == nil || j.Mode == None {
		return j, nil
	}
	set, err := s.cfg.Users.For(ctx, j.Session.UserID)
	if err != nil || set.LoginCheck == nil || !set.LoginCheck.BeforeDefault {
		return j, err
	}
	outcome, err := s.runLoginCheck(ctx, j, *set.LoginCheck)
	if err != nil {
		s.cfg.Log.Warn("a login check before a save could not be made; the default does not move", "session", j.Session.ID, "error", err)
		text := "the check could not be made in the session's Chrome: " + fault.CodeOf(err).Text()
		outcome.Error = &text
	}
	if j.checked = &outcome; !outcome.LoggedIn {
		j.Move, j.NotMoved = nil, LoginCheckFailed
	}
	return j, nil
}

// runLoginCheck makes a check in the Chrome of the session that is being saved.
func (s *Saver) runLoginCheck(ctx context.Context, j Job, check settings.LoginCheck) (login.Outcome, error) {
	failed := login.Outcome{CheckedAt: s.cfg.Now().UTC(), Conditions: []browser.Condition{}}
	if j.Dead || j.Chrome == nil {
		return failed, fault.New(fault.BrowserFailed, "session.check", "the session has no running Chrome")
	}
	wake, cancel := context.WithTimeout(ctx, restore.ThawDeadline)
	defer cancel()
	if err := j.Chrome.Wake(wake); err != nil {
		return failed, err
	}
	return s.cfg.Login.Check(ctx, j.Chrome, check)
}
