package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// LoginOutcome is what a login check found; the wire shape and the record. It
// holds no secret: of the address neither query nor fragment.
type LoginOutcome struct {
	LoggedIn   bool                `json:"logged_in"`
	CheckedAt  time.Time           `json:"checked_at"`
	URL        *string             `json:"url"`
	Status     *int64              `json:"status"`
	Conditions []browser.Condition `json:"conditions"`
	Error      *string             `json:"error"` // why the page could not be judged
	DurationMS int64               `json:"duration_ms"`
	SnapshotID *string             `json:"snapshot_id"` // of the default that was checked; nil before a save
	Version    *int64              `json:"version"`
}

// CheckDefault starts a Chrome on the user's default, without its tabs and
// never to be saved, runs the user's login check in it and throws it away. The
// outcome is kept with the user.
func (s *Service) CheckDefault(ctx context.Context, c Caller, userID string) (LoginOutcome, error) {
	if err := c.forUser(userID); err != nil {
		return LoginOutcome{}, err
	}
	d, err := s.Catalogue.Default(ctx, userID)
	if err != nil {
		return LoginOutcome{}, err
	}
	set, err := s.settings(ctx, userID)
	if err != nil {
		return LoginOutcome{}, err
	}
	if set.LoginCheck == nil {
		return LoginOutcome{}, fault.New(fault.NoLoginCheck, "session.check", "the user's settings have no login_check")
	}
	snap, err := s.Catalogue.Snapshot(ctx, d.SnapshotID)
	if err != nil {
		return LoginOutcome{}, err
	}
	outcome, err := s.checkSnapshot(ctx, snap, *set.LoginCheck)
	if err != nil {
		return LoginOutcome{}, err
	}
	outcome.SnapshotID, outcome.Version = &d.SnapshotID, &d.Version
	from, err := s.Catalogue.Session(context.WithoutCancel(ctx), snap.SessionID)
	if err != nil {
		return outcome, err
	}
	_, err = s.Catalogue.UpdateUser(context.WithoutCancel(ctx), userID, outcome.CheckedAt, func(u *profiles.User) error {
		s.tellExpired(u, from, outcome)
		u.LoginChecked = encode(outcome)
		return nil
	})
	s.told()
	return outcome, err
}

// checkSnapshot runs a check in a Chrome of its own, in a session's place. The
// service waits for it when it closes.
func (s *Service) checkSnapshot(ctx context.Context, snap profiles.Snapshot, check LoginCheck) (LoginOutcome, error) {
	if err := s.slots.acquire(ctx, false); err != nil {
		return LoginOutcome{}, err
	}
	defer s.slots.release()
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return LoginOutcome{}, fault.New(fault.ShuttingDown, "session.check", "the daemon is shutting down")
	}
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	release, err := s.hold(ctx, snap, "restored")
	if err != nil {
		return LoginOutcome{}, err
	}
	defer release()
	up, _, err := s.unpackAndStart(ctx, Create{Engine: browser.EngineChrome}, snap, nil)
	if err != nil {
		return LoginOutcome{}, err
	}
	defer s.discard(ctx, up.chrome)
	return s.check(ctx, up.chrome, check)
}

// check runs a check in a Chrome.
func (s *Service) check(ctx context.Context, chrome Chrome, check LoginCheck) (LoginOutcome, error) {
	began := s.Now()
	asked := check.browser()
	ctx, cancel := context.WithTimeout(ctx, asked.Timeout+callDeadline)
	defer cancel()
	found, err := chrome.CheckLogin(ctx, asked)
	outcome := LoginOutcome{LoggedIn: found.LoggedIn && err == nil, CheckedAt: began.UTC(), Conditions: found.Conditions,
		DurationMS: s.Now().Sub(began).Milliseconds()}
	if outcome.Conditions == nil {
		outcome.Conditions = []browser.Condition{}
	}
	if found.URL != "" {
		outcome.URL = &found.URL
	}
	if found.Status != 0 {
		outcome.Status = &found.Status
	}
	if found.Problem != "" {
		outcome.Error = &found.Problem
	}
	return outcome, err
}

// lastCheck is the outcome of the last check of the user's default, nil where
// none was made.
func (s *Service) lastCheck(ctx context.Context, userID string) (*LoginOutcome, error) {
	user, err := s.Catalogue.User(ctx, userID)
	if err != nil || len(user.LoginChecked) == 0 {
		return nil, err
	}
	outcome := new(LoginOutcome)
	err = json.Unmarshal(user.LoginChecked, outcome)
	return outcome, fault.Wrap(err, fault.StoreFailed, "session.check", "the recorded outcome of the last check cannot be read")
}
