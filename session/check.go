package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/restore"
)

// LoginOutcome is what a login check found; the wire shape and the record. It
// holds no secret: of the address neither query nor fragment.
type LoginOutcome struct {
	LoggedIn   bool                `json:"logged_in"`
	CheckedAt  time.Time           `json:"checked_at"`
	URL        *string             `json:"url"`
	Status     *int64              `json:"status"`
	Conditions []browser.Condition `json:"conditions"`
	Error      *string             `json:"error"` // why the page could not be judged, or what is logged in not be saved
	DurationMS int64               `json:"duration_ms"`
	SnapshotID *string             `json:"snapshot_id"` // of the default that was checked; nil before a save
	Version    *int64              `json:"version"`
	// Failures is how many checks in a row had an error.
	Failures int64 `json:"failures"`
	// LoggedOutSince is when that version was first found logged out; nil where it
	// was found logged in since, or never otherwise.
	LoggedOutSince *time.Time `json:"logged_out_since"`
}

// CheckDefault starts a Chrome on the user's default, without its tabs and
// never to be saved, runs the user's login check in it and throws it away. The
// outcome is kept with the user.
func (s *Service) CheckDefault(ctx context.Context, c access.Caller, userID string) (LoginOutcome, error) {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return LoginOutcome{}, err
	}
	leave, err := s.enterCheck(ctx, userID)
	if err != nil {
		return LoginOutcome{}, err
	}
	defer leave()
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
	return s.recordCheck(context.WithoutCancel(ctx), userID, snap, outcome)
}

// recordCheck keeps the outcome of a check of the user's default with the user,
// and tells where the login is over.
func (s *Service) recordCheck(ctx context.Context, userID string, snap profiles.Snapshot, outcome LoginOutcome) (LoginOutcome, error) {
	from, err := s.Catalogue.Session(ctx, snap.SessionID)
	if err != nil {
		return outcome, err
	}
	over := false
	_, err = s.Catalogue.UpdateUser(ctx, userID, outcome.CheckedAt, func(u *profiles.User) error {
		outcome, over = outcome.after(outcomeOf(*u))
		if over {
			u.Notices, u.NoticesOf = s.Notices.Of(from, events.HookExpired), from.ID
		}
		u.LoginChecked = encode(outcome)
		return nil
	})
	if err == nil && over {
		s.Meter.LoginExpired()
	}
	s.Notices.Wake()
	return outcome, err
}

// after fills in what follows from the check before. over tells that the login of
// this version is over and was not known to be.
func (o LoginOutcome) after(last LoginOutcome) (_ LoginOutcome, over bool) {
	same := last.Version != nil && *last.Version == *o.Version
	switch {
	case o.Error != nil:
		o.Failures = last.Failures + 1
		if same && !o.LoggedIn {
			o.LoggedOutSince = last.LoggedOutSince
		}
	case o.LoggedIn:
	case same && last.LoggedOutSince != nil:
		o.LoggedOutSince = last.LoggedOutSince
	default:
		o.LoggedOutSince, over = &o.CheckedAt, true
	}
	return o, over
}

// checkSnapshot runs a check in a Chrome of its own, in a session's place. The
// service waits for it when it closes.
func (s *Service) checkSnapshot(ctx context.Context, snap profiles.Snapshot, check LoginCheck) (LoginOutcome, error) {
	if err := s.capacity.Acquire(ctx, false); err != nil {
		return LoginOutcome{}, err
	}
	defer s.capacity.Release()
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
	release, err := s.snapshots.Hold(ctx, snap, "restored")
	if err != nil {
		return LoginOutcome{}, err
	}
	defer release()
	up, err := s.restorer.FromFiles(ctx, restore.Request{Engine: browser.EngineChrome}, snap)
	if err != nil {
		return LoginOutcome{}, err
	}
	defer s.discard(ctx, up.Chrome)
	return s.check(ctx, up.Chrome, check)
}

// check runs a check in a Chrome.
func (s *Service) check(ctx context.Context, chrome browsers.Verifier, check LoginCheck) (LoginOutcome, error) {
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
	if found.Status >= 500 && !found.LoggedIn && found.Problem == "" {
		found.Problem = fmt.Sprintf("the site answered %d", found.Status)
	}
	if found.Problem != "" {
		outcome.Error = &found.Problem
	}
	s.Meter.LoginChecked(outcome.kind(err))
	return outcome, err
}

// kind is what a check is counted as.
func (o LoginOutcome) kind(err error) Outcome {
	switch {
	case err != nil || o.Error != nil:
		return CheckFailed
	case o.LoggedIn:
		return CheckLoggedIn
	default:
		return CheckLoggedOut
	}
}

// LastCheck returns the outcome of the last check on request of the user's default;
// nil where none was made.
func (s *Service) LastCheck(ctx context.Context, c access.Caller, userID string) (*LoginOutcome, error) {
	if err := c.ForUser(userID, access.Look); err != nil {
		return nil, err
	}
	user, err := s.Catalogue.User(ctx, userID)
	if err != nil || len(user.LoginChecked) == 0 {
		return nil, err
	}
	outcome := new(LoginOutcome)
	err = json.Unmarshal(user.LoginChecked, outcome)
	return outcome, fault.Wrap(err, fault.StoreFailed, "session.check", "the recorded outcome of the last check cannot be read")
}
